"""PyTorch's `*_copy` operators: what a view shows, as a tensor of its own."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from dyngraph.ops.complexes import view_as_complex, view_as_real
from dyngraph.ops.diagonals import diagonal
from dyngraph.ops.out import takes_out
from dyngraph.ops.parts import chunk, narrow, select, split, split_with_sizes, unbind, unfold
from dyngraph.ops.permutation import permute, t, transpose
from dyngraph.ops.placing import as_strided
from dyngraph.ops.repetition import expand
from dyngraph.ops.shape import clone, squeeze, unsqueeze, view
from dyngraph.tensor import Tensor, canonical_dim


def _named(show: Callable[..., Any], name: str, doc: str) -> Callable[..., Any]:
    """The operator that copies what `show` shows; its parameters are those of `show`."""

    @functools.wraps(show, updated=())
    def copy(*args: Any, **kwargs: Any) -> Any:
        shown = show(*args, **kwargs)
        return tuple(clone(part) for part in shown) if isinstance(shown, tuple) else clone(shown)

    copy.__name__ = copy.__qualname__ = name
    copy.__module__ = __name__
    copy.__doc__ = doc
    return copy


def _copying(show: Callable[..., Any], doc: str) -> Callable[..., Any]:
    return takes_out(_named(show, f"{show.__name__}_copy", doc))


def _copied(split: Callable[..., Any], doc: str) -> Callable[..., Any]:
    return _named(split, f"unsafe_{split.__name__}", doc)


unsafe_split = _copied(
    split,
    """The parts that `split` shows, as copies: each may be written to.

    >>> dg.unsafe_split(dg.tensor([1, 2, 3]), 2)
    (tensor([1, 2]), tensor([3]))
    """,
)
unsafe_split_with_sizes = _copied(
    split_with_sizes,
    """The parts that `split_with_sizes` shows, as copies.

    >>> dg.unsafe_split_with_sizes(dg.tensor([1, 2, 3]), [1, 2])
    (tensor([1]), tensor([2, 3]))
    """,
)
unsafe_chunk = _copied(
    chunk,
    """The parts that `chunk` shows, as copies.

    >>> dg.unsafe_chunk(dg.tensor([1, 2, 3]), 2)
    (tensor([1, 2]), tensor([3]))
    """,
)


@takes_out
def alias_copy(input: Any) -> Tensor:
    """A tensor of its own with the values of `input`.

    >>> dg.alias_copy(dg.tensor([1, 2]))
    tensor([1, 2])
    """
    return clone(input)


@takes_out
def detach_copy(input: Any) -> Tensor:
    """The values of `input` in a tensor of its own, outside the graph.

    >>> x = dg.ones(2, requires_grad=True)
    >>> dg.detach_copy(x).requires_grad
    False
    """
    return clone(input.detach())


as_strided_copy = _copying(
    as_strided,
    """A copy of what `as_strided` shows.

    >>> dg.as_strided_copy(dg.arange(4), (2,), (2,))
    tensor([0, 2])
    """,
)
diagonal_copy = _copying(
    diagonal,
    """A copy of what `diagonal` shows.

    >>> dg.diagonal_copy(dg.tensor([[1, 2], [3, 4]]))
    tensor([1, 4])
    """,
)
expand_copy = _copying(
    expand,
    """A copy of what `expand` shows, each element as often as it shows.

    >>> dg.expand_copy(dg.tensor([[1], [2]]), (2, 2))
    tensor([[1, 1],
            [2, 2]])
    """,
)
narrow_copy = _copying(
    narrow,
    """A copy of what `narrow` shows.

    >>> dg.narrow_copy(dg.tensor([1, 2, 3]), 0, 1, 2)
    tensor([2, 3])
    """,
)
permute_copy = _copying(
    permute,
    """A copy of what `permute` shows.

    >>> dg.permute_copy(dg.tensor([[1, 2]]), (1, 0))
    tensor([[1],
            [2]])
    """,
)
select_copy = _copying(
    select,
    """A copy of what `select` shows.

    >>> dg.select_copy(dg.tensor([[1, 2], [3, 4]]), 0, 1)
    tensor([3, 4])
    """,
)


@takes_out
def slice_copy(
    input: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """A copy of what the slice `start:end:step` along `dim` shows.

    Raises RuntimeError for a step that is not positive.

    >>> dg.slice_copy(dg.tensor([1, 2, 3]), 0, 1)
    tensor([2, 3])
    """
    if step < 1:
        raise RuntimeError(f"slice step must be positive, got {step}. Reverse by flip().")
    axis = canonical_dim(dim, input.ndim)
    return clone(input[(*[slice(None)] * axis, slice(start, end, step))])


split_copy = _copying(
    split,
    """Copies of what `split` shows.

    >>> dg.split_copy(dg.tensor([1, 2, 3]), 2)
    (tensor([1, 2]), tensor([3]))
    """,
)
split_with_sizes_copy = _copying(
    split_with_sizes,
    """Copies of what `split_with_sizes` shows.

    >>> dg.split_with_sizes_copy(dg.tensor([1, 2, 3]), [1, 2])
    (tensor([1]), tensor([2, 3]))
    """,
)
squeeze_copy = _copying(
    squeeze,
    """A copy of what `squeeze` shows.

    >>> dg.squeeze_copy(dg.tensor([[1, 2]]))
    tensor([1, 2])
    """,
)
t_copy = _copying(
    t,
    """A copy of what `t` shows.

    >>> dg.t_copy(dg.tensor([[1, 2]]))
    tensor([[1],
            [2]])
    """,
)
transpose_copy = _copying(
    transpose,
    """A copy of what `transpose` shows.

    >>> dg.transpose_copy(dg.tensor([[1, 2]]), 0, 1)
    tensor([[1],
            [2]])
    """,
)
unbind_copy = _copying(
    unbind,
    """Copies of what `unbind` shows.

    >>> dg.unbind_copy(dg.tensor([1, 2]))
    (tensor(1), tensor(2))
    """,
)
unfold_copy = _copying(
    unfold,
    """A copy of what `unfold` shows.

    >>> dg.unfold_copy(dg.tensor([1, 2, 3]), 0, 2, 1)
    tensor([[1, 2],
            [2, 3]])
    """,
)
unsqueeze_copy = _copying(
    unsqueeze,
    """A copy of what `unsqueeze` shows.

    >>> dg.unsqueeze_copy(dg.tensor([1, 2]), 0)
    tensor([[1, 2]])
    """,
)
view_as_complex_copy = _copying(
    view_as_complex,
    """A copy of what `view_as_complex` shows.

    >>> dg.view_as_complex_copy(dg.tensor([[1.0, 2.0]]))
    tensor([1.+2.j])
    """,
)
view_as_real_copy = _copying(
    view_as_real,
    """A copy of what `view_as_real` shows.

    >>> dg.view_as_real_copy(dg.tensor([1 + 2j]))
    tensor([[1., 2.]])
    """,
)
view_copy = _copying(
    view,
    """A copy of what `view` shows.

    >>> dg.view_copy(dg.tensor([1, 2]), (2, 1))
    tensor([[1],
            [2]])
    """,
)


__all__ = [
    "alias_copy",
    "as_strided_copy",
    "detach_copy",
    "diagonal_copy",
    "expand_copy",
    "narrow_copy",
    "permute_copy",
    "select_copy",
    "slice_copy",
    "split_copy",
    "split_with_sizes_copy",
    "squeeze_copy",
    "t_copy",
    "transpose_copy",
    "unbind_copy",
    "unfold_copy",
    "unsafe_chunk",
    "unsafe_split",
    "unsafe_split_with_sizes",
    "unsqueeze_copy",
    "view_as_complex_copy",
    "view_as_real_copy",
    "view_copy",
]

METHODS = ("narrow_copy", "unsafe_chunk", "unsafe_split", "unsafe_split_with_sizes")
"""The functions of this file that are methods of Tensor too."""
