"""Selective checkpointing: a policy says which operators' results are kept for the second run."""

from __future__ import annotations

import enum
import itertools
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax

from dyngraph import devices
from dyngraph.errors import CheckpointError
from dyngraph.observed import Interceptor
from dyngraph.placement import put
from dyngraph.tensor import Tensor

SAC_IGNORED_OPS = frozenset({"detach"})
"""The names of operators that no policy is asked about."""


class CheckpointPolicy(enum.Enum):
    """What becomes of an operator's result: kept, computed again, or kept in the CPU's memory.

    MUST_* and PREFER_* do the same; MUST_* tells a compiler not to decide otherwise.
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


_SAVED = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)
_OFFLOADED = (CheckpointPolicy.MUST_CPU_OFFLOAD, CheckpointPolicy.PREFER_CPU_OFFLOAD)


class SelectiveCheckpointContext:
    """What a policy gets first: `op_output`, the operator's result; `is_recompute` is False."""

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


def create_selective_checkpoint_contexts(
    policy_fn_or_list: Callable[..., Any] | Sequence[Any], allow_cache_entry_mutation: bool = False
) -> tuple[Interceptor, Interceptor]:
    """The pair of contexts for `checkpoint(context_fn=...)` that keeps chosen operators' results.

    `policy(ctx, op, *inputs, **options)` returns a `CheckpointPolicy`, or whether to keep; or it is
    a list of operators to keep: functions such as `dg.mm`, or names. `op` is the function behind an
    operator, whose `__name__` is in the names of nodes. Operators are asked about as they are
    recorded: a composition such as `nn.functional.linear` is seen as what it consists of.

    Raises TypeError for another kind of policy; in backward, RuntimeError where a kept result was
    written in place since, unless `allow_cache_entry_mutation`.

    >>> from functools import partial
    >>> from dyngraph.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
    >>> x = dg.ones(2, 2, requires_grad=True)
    >>> y = checkpoint(
    ...     lambda x: (x @ x).exp(),
    ...     x,
    ...     use_reentrant=False,
    ...     context_fn=partial(create_selective_checkpoint_contexts, ["matmul"]),
    ... )
    >>> y.sum().backward()
    """
    if isinstance(policy_fn_or_list, (list, tuple, set, frozenset)):
        names = {p if isinstance(p, str) else p.__name__ for p in policy_fn_or_list}

        def policy(ctx: Any, op: Any, *inputs: Any, **options: Any) -> bool:
            return op.__name__ in names

    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError(
            "policy_fn_or_list must be either a function or a list of ops, got "
            f"{type(policy_fn_or_list).__name__}."
        )
    kept: dict[str, list[Any]] = defaultdict(list)
    return _Keeping(policy, kept), _Replaying(kept, allow_cache_entry_mutation)


class _Keeping(Interceptor):
    """The first run: asks the policy, and keeps results."""

    def __init__(self, policy: Callable[..., Any], kept: dict[str, list[Any]]) -> None:
        super().__init__()
        self.policy, self.kept = policy, kept

    def intercept(self, op: Any, given: Mapping[str, Any], run: Callable[[], Any]) -> Any:
        results = run()
        if op.__name__ in SAC_IGNORED_OPS or results is NotImplemented:
            return results
        count = len(op.spec.inputs)
        values = list(given.values())
        answer = self.policy(
            SelectiveCheckpointContext(is_recompute=False, op_output=results),
            op,
            *values[:count],
            **dict(zip(op.spec.statics, values[count:], strict=True)),
        )
        if isinstance(answer, bool):
            answer = CheckpointPolicy.MUST_SAVE if answer else CheckpointPolicy.PREFER_RECOMPUTE
        entry = None
        if answer in _SAVED or answer in _OFFLOADED:
            tensors = [results] if isinstance(results, Tensor) else list(results)
            entry = [_Kept(t, offload=answer in _OFFLOADED) for t in tensors]
        self.kept[op.__name__].append(entry)
        return results


def kept_results(context: object) -> list[tuple[str, jax.Array]]:
    """What a policy keeps for the second run, whose context is given: names of operators, and
    arrays."""
    if not isinstance(context, _Replaying):
        return []
    return [
        (name, kept.array)
        for name, entries in context.kept.items()
        for kept in itertools.chain.from_iterable(entry or () for entry in entries)
        if kept.array is not None
    ]


class _Kept:
    """One result that is kept."""

    def __init__(self, tensor: Tensor | None, *, offload: bool) -> None:
        self.array = None
        if tensor is None:
            return
        self.cell, self.version = tensor._cell, tensor._cell.version
        self.array = tensor._cell.array
        self.place = None
        if offload and tensor.device.type != "cpu":
            self.place = self.array.sharding
            self.array = put(self.array, devices.as_jax_device("cpu"))

    def get(self, *, may_be_written: bool) -> jax.Array | None:
        """The array; RuntimeError where it was written to."""
        if self.array is None:
            return None
        if self.cell.version != self.version and not may_be_written:
            raise RuntimeError(
                "Tensor cached during selective activation checkpoint has been mutated. Write to "
                "a clone() of it, or pass allow_cache_entry_mutation=True."
            )
        return put(self.array, self.place)


class _Replaying(Interceptor):
    """The second run: takes what was kept instead of computing it."""

    def __init__(self, kept: dict[str, list[Any]], may_be_written: bool) -> None:
        super().__init__()
        self.kept, self.may_be_written = kept, may_be_written
        self.counts: dict[str, int] = {}

    def __enter__(self) -> Any:
        self.counts = defaultdict(int)
        return super().__enter__()

    def intercept(self, op: Any, given: Mapping[str, Any], run: Callable[[], Any]) -> Any:
        name = op.__name__
        if name in SAC_IGNORED_OPS:
            return run()
        position = self.counts[name]
        self.counts[name] += 1
        if position >= len(self.kept[name]):
            raise CheckpointError(
                f"checkpoint: the second run calls {name} more often than the first, which called "
                f"it {len(self.kept[name])} times. The function must do the same both times."
            )
        entry = self.kept[name][position]
        if entry is None:
            return run()
        arrays = [k.get(may_be_written=self.may_be_written) for k in entry]
        kept = arrays[0] if op.spec.outputs is None else arrays
        return op.with_kept()(**given, kept=kept)
