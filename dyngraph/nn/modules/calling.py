"""Calling: how a module runs: the hooks before it, `forward`, the hooks after it.

A module without hooks calls `forward` and nothing else.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from dyngraph.graph.hooks import RemovableHandle
from dyngraph.nn.modules.backward_hook import BackwardHook
from dyngraph.nn.modules.hooks import GLOBAL, ModuleHooks, WrappedHook
from dyngraph.pure import current_pure
from dyngraph.tensor import Tensor

_forward_pre, _forward = GLOBAL.forward_pre, GLOBAL.forward
_backward_pre, _backward = GLOBAL.backward_pre, GLOBAL.backward


class Calling:
    """The part of Module that runs it."""

    _backward_pre_hooks: ModuleHooks
    _backward_hooks: ModuleHooks
    _forward_hooks: ModuleHooks
    _forward_pre_hooks: ModuleHooks
    _is_full_backward_hook: bool | None

    def _forward_unimplemented(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes; to be overridden."""
        raise NotImplementedError(
            f'Module [{type(self).__name__}] is missing the required "forward" function. Define '
            "forward(self, ...) in the class."
        )

    forward: Callable[..., Any] = _forward_unimplemented

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        pure = current_pure()
        if pure is not None:
            pure.note_module(self)
        if not (
            self._forward_hooks
            or self._forward_pre_hooks
            or self._backward_hooks
            or self._backward_pre_hooks
            or _forward
            or _forward_pre
            or _backward
            or _backward_pre
        ):
            return self.forward(*args, **kwargs)
        return _Call(self, args, kwargs).run()

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Calls `hook(module, args)` before `forward`; it may return other arguments.

        With `with_kwargs` it is `hook(module, args, kwargs)`, and returns both, or None. With
        `prepend` it runs before those that are there.

        >>> layer = dg.nn.ReLU()
        >>> handle = layer.register_forward_pre_hook(lambda module, args: args[0] * 2)
        >>> layer(dg.ones(2))
        tensor([2., 2.])
        """
        return self._forward_pre_hooks.register(hook, prepend=prepend, with_kwargs=with_kwargs)

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Calls `hook(module, args, output)` after `forward`; it may return another output.

        With `with_kwargs` it is `hook(module, args, kwargs, output)`; with `always_call` it runs
        also when something raised, with None for an output that there is none of. With `prepend`
        it runs before those that are there.

        >>> layer = dg.nn.ReLU()
        >>> handle = layer.register_forward_hook(lambda module, args, output: output + 1)
        >>> layer(dg.ones(2))
        tensor([2., 2.])
        """
        return self._forward_hooks.register(
            hook, prepend=prepend, with_kwargs=with_kwargs, always=always_call
        )

    def register_full_backward_pre_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Calls `hook(module, grad_output)` before the module's backward; it may return other
        gradients of the outputs."""
        return self._backward_pre_hooks.register(hook, prepend=prepend)

    def register_full_backward_hook(
        self, hook: Callable[..., Any], prepend: bool = False
    ) -> RemovableHandle:
        """Calls `hook(module, grad_input, grad_output)` after the module's backward; it may return
        other gradients of the positional inputs.

        Raises RuntimeError beside a `register_backward_hook` of this module.

        >>> layer = dg.nn.Tanh()
        >>> handle = layer.register_full_backward_hook(lambda module, grads, _: print(grads))
        >>> layer(dg.zeros(2, requires_grad=True)).sum().backward()
        (tensor([1., 1.]),)
        """
        return self._register_backward_hook(hook, is_full=True, prepend=prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """`register_full_backward_hook` as it was before: the hook gets the gradients of the node
        that made the output, not of the module. Raises RuntimeError beside full ones."""
        return self._register_backward_hook(hook, is_full=False)

    def _register_backward_hook(
        self, hook: Callable[..., Any], *, is_full: bool, prepend: bool = False
    ) -> RemovableHandle:
        if self._is_full_backward_hook is not None and self._is_full_backward_hook != is_full:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single "
                "Module. Please use only one of them."
            )
        self._is_full_backward_hook = is_full
        return self._backward_hooks.register(hook, prepend=prepend)

    def _all_backward_hooks(self, *, is_full: bool) -> list[Callable[..., Any]]:
        common = GLOBAL.backward if GLOBAL.is_full_backward is is_full else {}
        own = self._backward_hooks if self._is_full_backward_hook is is_full else {}
        return [*common.values(), *own.values()]


class _Call:
    """One call of a module that has hooks: the arguments and the output as they are now."""

    def __init__(self, module: Calling, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.module = module
        self.args = args
        self.kwargs = kwargs
        self.output: Any = None
        self.called: set[int] = set()

    def run(self) -> Any:
        """The output, after all hooks."""
        try:
            return self._run()
        except Exception:
            self._run_always()
            raise

    def _run(self) -> Any:
        module = self.module
        for hooks in (GLOBAL.forward_pre, module._forward_pre_hooks):
            for number, hook in list(hooks.items()):
                self._run_pre_hook(hook, with_kwargs=number in hooks.with_kwargs)
        full = module._all_backward_hooks(is_full=True)
        pre = [*GLOBAL.backward_pre.values(), *module._backward_pre_hooks.values()]
        backward_hook = BackwardHook(module, full, pre) if full or pre else None
        if backward_hook is not None:
            self.args = backward_hook.on_inputs(self.args)
        self.output = module.forward(*self.args, **self.kwargs)
        for hooks in (GLOBAL.forward, module._forward_hooks):
            for number, hook in list(hooks.items()):
                self.called.add(number)
                self._run_hook(hook, with_kwargs=number in hooks.with_kwargs)
        if backward_hook is not None:
            if not isinstance(self.output, Tensor | tuple):
                warnings.warn(
                    "For backward hooks to be called, module output should be a Tensor or a tuple "
                    f"of Tensors but received {type(self.output)}",
                    UserWarning,
                    stacklevel=4,
                )
            self.output = backward_hook.on_outputs(self.output)
        partial = module._all_backward_hooks(is_full=False)
        node = _first_tensor(self.output).grad_fn if partial else None
        if node is not None:
            for hook in partial:
                node.register_hook(WrappedHook(hook, module))
        return self.output

    def _run_pre_hook(self, hook: Callable[..., Any], *, with_kwargs: bool) -> None:
        if not with_kwargs:
            answer = hook(self.module, self.args)
            if answer is not None:
                self.args = answer if isinstance(answer, tuple) else (answer,)
            return
        answer = hook(self.module, self.args, self.kwargs)
        if answer is None:
            return
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise RuntimeError(
                "forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got "
                f"{answer}."
            )
        self.args, self.kwargs = answer

    def _run_hook(self, hook: Callable[..., Any], *, with_kwargs: bool) -> None:
        given = (self.args, self.kwargs) if with_kwargs else (self.args,)
        answer = hook(self.module, *given, self.output)
        if answer is not None:
            self.output = answer

    def _run_always(self) -> None:
        """The hooks that also run when something raised, those that have not run yet."""
        for hooks in (GLOBAL.forward, self.module._forward_hooks):
            for number, hook in list(hooks.items()):
                if number not in hooks.always or number in self.called:
                    continue
                try:
                    self._run_hook(hook, with_kwargs=number in hooks.with_kwargs)
                except Exception as error:
                    warnings.warn(
                        "module forward hook with ``always_call=True`` raised an exception that "
                        f"was silenced as another error was raised in forward: {error}",
                        UserWarning,
                        stacklevel=4,
                    )


def _first_tensor(output: Any) -> Any:
    while not isinstance(output, Tensor):
        if isinstance(output, dict):
            output = next(value for value in output.values() if isinstance(value, Tensor))
        else:
            output = output[0]
    return output
