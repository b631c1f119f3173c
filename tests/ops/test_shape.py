"""What the table's rows can't say of shape operators: nodes, errors, one kernel for all starts.

Messages follow PyTorch 2.13's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import dyngraph as dg


def ones(*shape: int) -> Any:
    return dg.ones(*shape, requires_grad=True)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x.reshape(-1), "ViewBackward0"),
        (lambda x: x.view(3, 2), "ViewBackward0"),
        (lambda x: x.flatten(), "ViewBackward0"),
        (lambda x: x.squeeze(), "SqueezeBackward0"),
        (lambda x: x.unsqueeze(0), "UnsqueezeBackward0"),
        (lambda x: x.transpose(0, 1), "TransposeBackward0"),
        (lambda x: x.mT, "TransposeBackward0"),
        (lambda x: x.T, "PermuteBackward0"),
        (lambda x: x.movedim(0, 1), "PermuteBackward0"),
        (lambda x: x.t(), "TBackward0"),
        (lambda x: x.expand(2, 2, 3), "ExpandBackward0"),
        (lambda x: x.tile(2), "RepeatBackward0"),
        (lambda x: dg.cat([x, x]), "CatBackward0"),
        (lambda x: dg.stack([x, x]), "StackBackward0"),
        (lambda x: x.split(1)[0], "SplitBackward0"),
        (lambda x: x.split([1, 1])[0], "SplitWithSizesBackward0"),
        (lambda x: x.chunk(2)[0], "SplitBackward0"),
        (lambda x: x.unbind()[0], "UnbindBackward0"),
        (lambda x: x.narrow(0, 0, 1), "SliceBackward0"),
        (lambda x: x.select(0, 0), "SelectBackward0"),
        (lambda x: x.diagonal(), "DiagonalBackward0"),
        (lambda x: x.clone(), "CloneBackward0"),
    ],
)
def test_node_has_the_name_of_pytorchs(function: Callable[[Any], Any], expected: str) -> None:
    assert function(ones(2, 3)).grad_fn.name() == expected


def test_cat_has_an_edge_to_each_tensor() -> None:
    a, b = ones(1), ones(2)
    joined: Any = dg.cat([a, dg.ones(1), b])
    edges = joined.grad_fn.next_functions
    assert [node and node.variable is leaf for (node, _), leaf in zip(edges, [a, None, b])] == [
        True,
        None,
        True,
    ]


@pytest.mark.parametrize("name", ["unbind", "split", "chunk"])
def test_parts_are_the_outputs_of_one_node(name: str) -> None:
    parts = getattr(ones(2, 3), name)(*{"unbind": (), "split": (1,), "chunk": (2,)}[name])
    assert isinstance(parts, tuple)
    assert parts[0].grad_fn is parts[1].grad_fn
    assert [part.output_nr for part in parts] == [0, 1]


def test_a_part_without_gradient_gets_zeros() -> None:
    x = ones(2, 2)
    _, second = x.unbind()
    (grad,) = dg.autograd.grad(second.sum(), x)
    assert grad.tolist() == [[0.0, 0.0], [1.0, 1.0]]


def test_select_compiles_no_kernel_for_each_index() -> None:
    x = ones(5, 3)
    forward = x.select(0, 0).grad_fn.plan.kernel.forward
    for position in (np.zeros(1, np.int32), jnp.zeros(1, jnp.int32)):  # see storage.Place
        for _ in range(2):
            forward(x.detach().jax(), position)
    compiled = forward._cache_size()
    for i in range(5):
        x.select(0, i).sum().backward()
    assert forward._cache_size() == compiled
    assert x.grad.tolist() == [[1.0] * 3] * 5


def test_narrow_has_one_kernel_for_all_starts() -> None:
    x = ones(5)
    kernels = {x.narrow(0, start, 2).grad_fn.plan.kernel for start in range(4)}
    assert len(kernels) == 1


def test_contiguous_is_the_tensor_itself() -> None:
    x = ones(2)
    assert x.contiguous() is x


def test_cat_skips_tensors_of_shape_0() -> None:
    x = ones(2, 3)
    assert dg.cat([dg.zeros(0), x]).shape == (2, 3)


@pytest.mark.parametrize(
    ("function", "kind", "message"),
    [
        (
            lambda: ones(6).view(3, 4),
            RuntimeError,
            r"shape '\[3, 4\]' is invalid for input of size 6",
        ),
        (
            lambda: ones(6).view(-1, 4),
            RuntimeError,
            r"shape '\[-1, 4\]' is invalid for input of size",
        ),
        (lambda: ones(6).reshape(-1, -1), RuntimeError, "only one dimension can be inferred"),
        (lambda: ones(6).view(-2, 3), RuntimeError, "invalid shape dimension -2 at index 0"),
        (lambda: ones(0).view(-1, 0), RuntimeError, "cannot reshape tensor of 0 elements"),
        (lambda: ones(2, 3).flatten(1, 0), RuntimeError, "start_dim cannot come after end_dim"),
        (
            lambda: ones(6).unflatten(0, (2, 4)),
            RuntimeError,
            "don't multiply up to the size of dim 0",
        ),
        (lambda: ones(6).unflatten(0, ()), RuntimeError, "sizes must be non-empty"),
        (lambda: ones(2).squeeze(5), IndexError, r"in range of \[-1, 0\], but got 5"),
        (lambda: ones(2).unsqueeze(3), IndexError, r"in range of \[-2, 1\], but got 3"),
        (lambda: ones(2, 3).transpose(0, 2), IndexError, "Dimension out of range"),
        (
            lambda: ones(2, 3).permute(1),
            RuntimeError,
            r"input.dim\(\) = 2 is not equal to len\(dims\) = 1",
        ),
        (lambda: ones(2, 3).permute(1, 1), RuntimeError, "duplicate dims are not allowed"),
        (lambda: ones(1, 1, 1).t(), RuntimeError, r"but self is 3D. Use transpose\(\)"),
        (lambda: ones(2).mT, RuntimeError, r"Got 1-D tensor. Use unsqueeze\(\)"),
        (lambda: ones(1, 1, 1).H, RuntimeError, "consider using tensor.mH"),
        (lambda: ones(2, 3).movedim((0, 0), (1, 0)), RuntimeError, "repeated dim in `source`"),
        (
            lambda: ones(2, 3).movedim((0, 1), 0),
            RuntimeError,
            "should contain the same number of dims",
        ),
        (lambda: ones(6).expand(4), RuntimeError, r"\(4\) must match the existing size \(6\)"),
        (lambda: ones(6).expand(-1, 6), RuntimeError, "isn't allowed in a leading, non-existing"),
        (lambda: ones(2, 3).expand(3), RuntimeError, r"provided \(1\) must be greater or equal"),
        (
            lambda: dg.broadcast_tensors(ones(2), ones(3)),
            RuntimeError,
            r"\[2\], \[3\] do not broadcast",
        ),
        (lambda: ones(2, 3).repeat(2), RuntimeError, r"can not be smaller.*Use tile\(\)"),
        (lambda: ones(2).repeat(-1), RuntimeError, "negative dimension"),
        (lambda: ones(2).repeat_interleave(-1), RuntimeError, "Repeats must be non-negative"),
        (lambda: dg.cat([]), ValueError, "expected a non-empty list of Tensors"),
        (
            lambda: dg.cat(ones(2)),
            TypeError,
            "must be tuple of Tensors, not Tensor. Put the tensors",
        ),
        (lambda: dg.cat([ones(2, 3), ones(6)]), RuntimeError, "dimensions: got 2 and 1"),
        (
            lambda: dg.cat([ones(2, 3), ones(2, 4)]),
            RuntimeError,
            "Expected size 3 but got size 4 for",
        ),
        (
            lambda: dg.cat([ones(2), dg.tensor(1.0)]),
            RuntimeError,
            r"\(at position 1\).*Use stack\(\)",
        ),
        (lambda: dg.stack([]), RuntimeError, "expects a non-empty TensorList"),
        (
            lambda: dg.stack([ones(2), ones(3)]),
            RuntimeError,
            r"got \[2\] at entry 0 and \[3\] at entry 1",
        ),
        (lambda: ones(3).split([1, 1]), RuntimeError, "sum exactly to 3"),
        (lambda: ones(3).split(0), RuntimeError, "split_size can only be 0 if dimension size is 0"),
        (lambda: ones(3).chunk(0), RuntimeError, "`chunks` to be greater than 0, got: 0"),
        (lambda: ones(3).tensor_split(0), RuntimeError, "must be larger than 0, got 0"),
        (lambda: ones(3).hsplit(2), RuntimeError, "3 is not divisible by the split_size 2"),
        (lambda: dg.tensor(1.0).unbind(), IndexError, "tensor has no dimensions"),
        (
            lambda: ones(4).narrow(0, 2, 3),
            RuntimeError,
            r"start \(2\) \+ length \(3\) exceeds.*\(4\)",
        ),
        (lambda: ones(4).narrow(0, 7, 1), IndexError, r"in range of \[-4, 4\], but got 7"),
        (lambda: ones(4).narrow(0, 0, -1), RuntimeError, "length must be non-negative"),
        (
            lambda: ones(2, 3).select(0, 2),
            IndexError,
            r"index 2 out of range for tensor of size \[2, 3\] at dimension 0",
        ),
        (lambda: ones(2, 3).select(0, -3), IndexError, "index -3 out of range"),
        (
            lambda: ones(4).unfold(0, 5, 1),
            RuntimeError,
            "maximum size for tensor at dimension 0 is 4",
        ),
        (lambda: ones(4).unfold(0, 1, 0), RuntimeError, "step is 0 but must be > 0"),
        (lambda: ones(2).flip(0, 0), RuntimeError, "appears multiple times in the list of dims"),
        (lambda: ones(2).fliplr(), RuntimeError, "Input must be >= 2-d"),
        (lambda: ones(2).roll((1, 2)), RuntimeError, "must align. shifts: 2, dims:0"),
        (lambda: ones(2).rot90(), RuntimeError, "expected total dims >= 2"),
        (lambda: ones(2, 2).rot90(1, (0, 0)), RuntimeError, "rotation dims to be different"),
        (lambda: ones(2).tril(), RuntimeError, "must have at least 2 dimensions"),
        (lambda: ones(2, 2).diagonal(0, 1, 1), RuntimeError, "cannot be identical 1, 1"),
        (lambda: ones(1, 1, 1).diag(), RuntimeError, r"Got 3D. Use diagonal\(\)"),
        (
            lambda: dg.meshgrid(ones(2, 3)),
            RuntimeError,
            r"Expected 0D or 1D tensor.*flatten\(\) it",
        ),
        (lambda: dg.meshgrid(ones(2), indexing="zz"), RuntimeError, 'one of "xy" or "ij"'),
    ],
)
def test_what_does_not_fit_raises(
    function: Callable[[], Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        function()


def test_select_of_a_tensor_without_dims_raises() -> None:
    with pytest.raises(IndexError, match="cannot be applied to a 0-dim tensor"):
        dg.tensor(1.0).select(0, 0)


def test_splitting_nothing_gives_empty_parts() -> None:
    assert [part.shape for part in dg.zeros(0, 2).chunk(2)] == [(0, 2), (0, 2)]
    assert [part.shape for part in dg.zeros(0, 2).split(1)] == [(0, 2)]


def test_tensor_split_may_cut_backwards() -> None:
    parts = dg.tensor_split(dg.tensor([1, 2, 3, 4]), (3, 1))
    assert [part.tolist() for part in parts] == [[1, 2, 3], [], [2, 3, 4]]


def test_shapes_may_be_given_one_by_one_or_together() -> None:
    x = dg.tensor([[1.0, 2.0]])
    assert x.expand(2, 2).shape == x.expand((2, 2)).shape == x.expand([2, 2]).shape == (2, 2)
    assert x.view(x.shape).shape == (1, 2)


def test_triangle_indices() -> None:
    assert dg.tril_indices(2, 3, -1).tolist() == [[1], [0]]
    assert dg.triu_indices(2, 3, 1).tolist() == [[0, 0, 1], [1, 2, 2]]


def test_slice_copy_is_the_whole_unless_told() -> None:
    x = dg.tensor([1.0, 2.0], requires_grad=True)
    assert dg.slice_copy(x).tolist() == [1.0, 2.0]
    with pytest.raises(RuntimeError, match=r"slice step must be positive, got 0\. Reverse by"):
        dg.slice_copy(x, 0, 0, 2, 0)


def test_detached_copy_is_not_written_with_its_source() -> None:
    x = dg.ones(2)
    copy = dg.detach_copy(x)
    x.add_(1)
    assert copy.tolist() == [1.0, 1.0]


def test_detach_is_a_function_too() -> None:
    x = dg.ones(2, requires_grad=True)
    assert not dg.detach(x).requires_grad
    assert dg.detach(x).is_set_to(x)


UNRAVELLED: dict[str, tuple[Any, Any, type[Exception], str]] = {
    "floats": (dg.tensor([1.0]), (2,), TypeError, r"integer dtype.* Convert it by \.long\(\)"),
    "shape": (dg.tensor([1]), 1.5, TypeError, "int or sequence of ints, but got float"),
    "negative": (dg.tensor([1]), (2, -1), ValueError, "cannot have negative values"),
    "empty": (dg.tensor([1]), (2, 0), RuntimeError, "has no positions"),
}


@pytest.mark.parametrize("case", UNRAVELLED)
def test_positions_in_no_shape_are_refused(case: str) -> None:
    indices, shape, error, message = UNRAVELLED[case]
    with pytest.raises(error, match=message):
        dg.unravel_index(indices, shape)


def test_positions_out_of_bounds_count_round() -> None:
    assert [x.tolist() for x in dg.unravel_index(dg.tensor([7, -1]), (3, 2))] == [[0, 2], [1, 1]]
    assert dg.unravel_index(dg.tensor(0), ()) == ()
    assert dg.unravel_index(dg.tensor(1), 5)[0].item() == 1
