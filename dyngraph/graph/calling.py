"""How a hook is called, and what it may answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dyngraph.graph.node import Values

Hook = Callable[..., Any]


def call_tensor_hook(
    hook: Hook, output_nr: int, grads: list[Any], values: Values, inputs: Sequence[Any]
) -> list[Any]:
    """The gradients after a tensor's hook has seen its own."""
    value = grads[output_nr]
    answer = hook(None if value is None else values.wrap(value))
    if answer is not None:
        answer = _checked(answer, value, hook, values)
        return [*grads[:output_nr], answer, *grads[output_nr + 1 :]]
    return grads


def call_pre_hook(hook: Hook, grads: list[Any], values: Values, inputs: Sequence[Any]) -> list[Any]:
    """The gradients after a node's pre-hook has seen them."""
    answer = hook(_wrap_all(grads, values))
    return grads if answer is None else _replace(answer, grads, hook, values)


def call_post_hook(
    hook: Hook, count: int, grads: list[Any], values: Values, inputs: Sequence[Any]
) -> list[Any]:
    """What a node made, the first `count` of `grads`, after its hook has seen it and what it was
    made of, the others."""
    results = grads[:count]
    answer = hook(_wrap_all(results, values), _wrap_all(grads[count:], values))
    return results if answer is None else _replace(answer, results, hook, values)


def _wrap_all(grads: Sequence[Any], values: Values) -> tuple[Any, ...]:
    return tuple(None if g is None else values.wrap(g) for g in grads)


def _replace(answer: Any, grads: Sequence[Any], hook: Hook, values: Values) -> list[Any]:
    if not isinstance(answer, tuple):
        raise TypeError(
            f"expected tuple, but hook returned '{type(answer).__name__}' (in hook "
            f"'{_name_of(hook)}'). Return one gradient for each that it was given, as a tuple."
        )
    if len(answer) != len(grads):
        raise RuntimeError(
            f"hook '{_name_of(hook)}' has returned an incorrect number of values "
            f"(got {len(answer)}, but expected {len(grads)}). Return one for each gradient "
            "it was given, None for one that has none."
        )
    return [
        None if new is None else _checked(new, old, hook, values)
        for new, old in zip(answer, grads, strict=True)
    ]


def _checked(answer: Any, value: Any, hook: Hook, values: Values) -> Any:
    """The value of what a hook returned in place of `value`."""
    if value is None:
        raise RuntimeError(
            f"can't replace a None gradient with a non-None value (in hook '{_name_of(hook)}')."
            " Return None where there is no gradient."
        )
    return values.unwrap(answer, value, _name_of(hook))


def _name_of(hook: Hook) -> str:
    return getattr(hook, "__name__", None) or "<unknown>"
