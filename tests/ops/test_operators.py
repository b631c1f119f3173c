"""Every row of the operator table: value, derivatives, what is saved, 16 bits, no elements."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import dyngraph as dg
from dyngraph.autograd import forward_ad as fwd
from dyngraph.tracing import trace_live
from tests.conftest import set_config
from tests.opinfo import OpInfo, Sample
from tests.rows import ROWS

CALLS = [(row, i) for row in ROWS for i in range(len(row.samples))]


def cases(calls: list[tuple[OpInfo, int]]) -> Any:
    """The parametrization over the sample calls, each named by its row and place."""
    return pytest.mark.parametrize(
        ("row", "sample"),
        [pytest.param(row, row.samples[i], id=f"{row.name}-{i}") for row, i in calls],
    )


def operator(name: str) -> Callable[..., Any]:
    """The function of that dotted name, or the Tensor method."""
    found: Any = dg
    for part in name.split("."):
        found = getattr(found, part, None)
        if found is None:
            found = getattr(dg.Tensor, name)
            if isinstance(found, property):
                return found.fget  # type: ignore[return-value]
    return found


def flat(result: Any) -> list[Any]:
    """The arrays or tensors of a result, in order."""
    if isinstance(result, (tuple, list)):
        return [leaf for item in result for leaf in flat(item)]
    return [result]


def arrays_of(sample: Sample) -> tuple[list[np.ndarray], Callable[[list[Any]], tuple[Any, ...]]]:
    """The arrays of a call's arguments (also inside lists), and how to put others in their
    place."""
    found: list[np.ndarray] = []

    def collect(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            for item in value:
                collect(item)

    for value in sample.args:
        collect(value)

    def rebuild(values: list[Any]) -> tuple[Any, ...]:
        rest = iter(values)

        def put(value: Any) -> Any:
            if isinstance(value, np.ndarray):
                return next(rest)
            if isinstance(value, (list, tuple)):
                return type(value)(put(item) for item in value)
            return value

        return tuple(put(value) for value in sample.args)

    return found, rebuild


def is_float(array: Any) -> bool:
    return bool(jnp.issubdtype(array.dtype, jnp.inexact))


WITH_GRADIENT = [
    (row, i)
    for row, i in CALLS
    if row.gradient and any(is_float(a) for a in arrays_of(row.samples[i])[0])
]
WITH_SECOND = [(row, i) for row, i in WITH_GRADIENT if row.second]


def run_whole(function: Callable[..., Any], *values: Any) -> Any:
    """`function(*values)`, compiled in one piece, which takes a fraction of the time that its
    operations one by one do; these, where it looks at values."""
    try:
        return jax.jit(function)(*values)
    except jax.errors.JAXTypeError:
        return function(*values)


class Trial:
    """A sample call run by dyngraph with every float input requiring grad, and its JAX twin."""

    def __init__(self, row: OpInfo, sample: Sample) -> None:
        self.row = row
        self.arrays, self.rebuild = arrays_of(sample)
        self.kwargs = sample.kwargs
        self.places = [i for i, a in enumerate(self.arrays) if is_float(a)]

    def as_dtypes(self, real: Any, complexes: Any) -> Trial:
        """With its floats in these dtypes."""
        for place in self.places:
            array = self.arrays[place]
            self.arrays[place] = array.astype(complexes if array.dtype.kind == "c" else real)
        return self

    def reference(self, *floats: Any) -> list[Any]:
        values: list[Any] = [jax.device_put(a) for a in self.arrays]
        for place, value in zip(self.places, floats, strict=True):
            values[place] = value
        return [
            jnp.asarray(r) for r in flat(self.row.reference(*self.rebuild(values), **self.kwargs))
        ]

    def reference_shapes(self) -> list[Any]:
        """The twin's results, of which only shape and dtype count: traced, where it can be."""
        try:
            return jax.eval_shape(self.reference, *self.floats())
        except jax.errors.JAXTypeError:
            return self.reference(*self.floats())

    def outputs(self) -> list[Any]:
        """Those of the twin's results that have a gradient, of which shape and dtype count."""
        return [r for r in self.reference_shapes() if is_float(r)]

    def differentiable(self, *floats: Any) -> list[Any]:
        return [r for r in self.reference(*floats) if is_float(r)]

    def floats(self) -> list[jax.Array]:
        return [jax.device_put(self.arrays[i]) for i in self.places]

    def run(self, *, requires_grad: bool = True) -> tuple[list[Any], list[Any]]:
        tensors = [dg.tensor(a) for a in self.arrays]
        inputs = [tensors[i] for i in self.places]
        for tensor in inputs:
            tensor.requires_grad_(requires_grad)
        result = operator(self.row.name)(*self.rebuild(tensors), **self.kwargs)
        return inputs, flat(result)

    def cotangents(self, outs: list[Any]) -> list[jax.Array]:
        draws = np.random.default_rng(7)
        made = []
        for out in outs:
            value = draws.standard_normal(out.shape)
            if jnp.issubdtype(out.dtype, jnp.complexfloating):
                value = value + 1j * draws.standard_normal(out.shape)
            made.append(jax.device_put(np.asarray(value).astype(out.dtype)))
        return made

    def close(self, got: Any, expected: Any) -> None:
        got = got.detach() if isinstance(got, dg.Tensor) else got
        np.testing.assert_allclose(
            np.asarray(got), np.asarray(expected), rtol=self.row.rtol, atol=self.row.atol
        )

    def reference_gradients(self, *values: Any) -> tuple[list[jax.Array], list[jax.Array]]:
        """PyTorch's gradients by JAX: conjugate in, conjugate out; and the twin's results."""
        count = len(self.places)
        floats, cotangents = values[:count], values[count:]

        def differentiable(*floats: Any) -> tuple[list[Any], list[Any]]:
            results = self.reference(*floats)
            return [r for r in results if is_float(r)], results

        _, vjp, results = jax.vjp(differentiable, *floats, has_aux=True)
        return [jnp.conj(g) for g in vjp([jnp.conj(c) for c in cotangents])], results


class Twin(NamedTuple):
    """What JAX has for a sample call; without a gradient, only the values."""

    values: Sequence[jax.Array]
    cotangents: Sequence[jax.Array] = ()
    gradients: Sequence[jax.Array] = ()
    directions: Sequence[jax.Array] = ()
    tangents: Sequence[jax.Array] = ()
    """Of the first sample of a row: what `directions` are pushed forward to."""
    seconds: Sequence[jax.Array] = ()
    """What `directions` are pulled back to through the gradients, for floats and cotangents."""


_twins: dict[tuple[int, int], Twin] = {}


def twin_of(row: OpInfo, sample: Sample) -> Twin:
    """The twin's answers to all that is asked of a call, compiled as one program and kept: most of
    the time is that of compilation."""
    key = id(row), id(sample)
    if key not in _twins:
        _twins[key] = ask_twin(row, sample)
    return _twins[key]


def ask_twin(row: OpInfo, sample: Sample) -> Twin:
    trial = Trial(row, sample)
    floats = trial.floats()
    if not (row.gradient and floats):
        return Twin(run_whole(trial.reference, *floats))
    cotangents = trial.cotangents(trial.outputs())
    directions = trial.cotangents(floats)

    def answers(
        floats: list[Any], cotangents: list[Any], directions: list[Any]
    ) -> dict[str, list[Any]]:
        found: dict[str, list[Any]] = {}
        given = [*floats, *cotangents]
        if row.second:
            found["gradients"], vjp, found["values"] = jax.vjp(
                trial.reference_gradients, *given, has_aux=True
            )
            found["seconds"] = [jnp.conj(w) for w in vjp([jnp.conj(d) for d in directions])]
        else:
            found["gradients"], found["values"] = trial.reference_gradients(*given)
        if sample is row.samples[0]:
            found["tangents"] = jax.jvp(trial.differentiable, floats, directions)[1]
        return found

    found = run_whole(answers, floats, cotangents, directions)
    return Twin(cotangents=cotangents, directions=directions, **found)


@cases(CALLS)
def test_value_is_that_of_the_jax_twin(row: OpInfo, sample: Sample) -> None:
    trial = Trial(row, sample)
    _, outs = trial.run(requires_grad=False)
    expected = twin_of(row, sample).values
    assert len(outs) == len(expected)
    for got, want in zip(outs, expected, strict=True):
        assert tuple(got.shape) == want.shape
        assert got.dtype == want.dtype
        trial.close(got, want)


@cases(WITH_GRADIENT)
def test_gradient_is_that_of_the_jax_twin(row: OpInfo, sample: Sample) -> None:
    trial = Trial(row, sample)
    inputs, outs = trial.run()
    outs = [o for o in outs if is_float(o)]
    twin = twin_of(row, sample)
    grads = dg.autograd.grad(outs, inputs, [dg.tensor(c) for c in twin.cotangents])
    for got, want in zip(grads, twin.gradients, strict=True):
        assert got.dtype == want.dtype
        trial.close(got, want)


@cases(list({row.name: (row, i) for row, i in reversed(WITH_GRADIENT)}.values()))
@pytest.mark.filterwarnings("ignore:.*not seen before")
def test_compiled_gradient_is_that_of_the_engine(row: OpInfo, sample: Sample) -> None:
    trial = Trial(row, sample)
    inputs, outs = trial.run()
    outs = [o for o in outs if is_float(o)]
    given = [dg.tensor(c) for c in trial.cotangents(outs)]
    want = dg.autograd.grad(outs, inputs, given, retain_graph=True)
    before = dg.compiled.stats()
    with set_config(compile_after=1), dg.compiled_autograd():
        got = dg.autograd.grad(outs, inputs, given)
    after = dg.compiled.stats()
    assert after.segments > before.segments or after.misses == before.misses, (
        dg.compiled.explain()[-1]  # unless no kernel ran
    )
    for g, w in zip(got, want, strict=True):
        assert g.dtype == w.dtype
        trial.close(g, w)


@cases(WITH_SECOND)
def test_second_derivative_is_that_of_the_jax_twin(row: OpInfo, sample: Sample) -> None:
    trial = Trial(row, sample)
    inputs, outs = trial.run()
    outs = [o for o in outs if is_float(o)]
    twin = twin_of(row, sample)
    given = [dg.tensor(c).requires_grad_() for c in twin.cotangents]
    grads = dg.autograd.grad(outs, inputs, given, create_graph=True)
    live = [(g, d) for g, d in zip(grads, twin.directions, strict=True) if g.requires_grad]
    got = dg.autograd.grad(
        [g for g, _ in live],
        [*inputs, *given],
        [dg.tensor(d) for _, d in live],
        allow_unused=True,
    )
    for g, w in zip(got, twin.seconds, strict=True):
        found = np.zeros_like(w) if g is None else np.asarray(g)
        np.testing.assert_allclose(found, np.asarray(w), rtol=10 * row.rtol, atol=10 * row.atol)


@cases(WITH_GRADIENT)
def test_saves_only_tensors_that_backward_reads(row: OpInfo, sample: Sample) -> None:
    trial = Trial(row, sample)
    _, outs = trial.run()
    seen: set[Any] = set()
    todo = [o.grad_fn for o in outs if o.grad_fn is not None]
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        todo.extend(n for n, _ in node.next_functions if n is not None)
        if not hasattr(node, "plan") or not node.saved:
            continue
        targets = tuple(None if n is None else n.outputs[nr] for n, nr in node.edges)
        grads = [jax.device_put(np.zeros(shape, dtype)) for shape, dtype in node.outputs]
        present = [i for i, s in enumerate(node.saved) if s is not None]
        function = node.plan.function(targets, None)

        def backward(
            *values: Any, saved: Any = node.saved, present: Any = present, function: Any = function
        ) -> list[Any]:
            arguments = list(saved)
            for i, value in zip(present, values, strict=False):
                arguments[i] = value
            results = function(*arguments, *values[len(present) :])
            return [r for r in results if r is not None]

        live = trace_live(backward, [*(node.saved[i] for i in present), *grads]).live
        assert all(live[: len(present)]), f"{node.name()} saves what its backward does not read"


def first_calls(
    calls: list[tuple[OpInfo, int]], wanted: Callable[[Sample], bool], *, every: int = 1
) -> Any:
    """The parametrization over the first sample of each row that is wanted, or of some rows."""
    firsts: dict[int, tuple[OpInfo, int]] = {}
    for row, i in calls:
        if wanted(row.samples[i]):
            firsts.setdefault(id(row), (row, i))
    return cases(list(firsts.values())[::every])


def has_real_floats_only(sample: Sample) -> bool:
    """Whether there are floats among its arrays, and no complex numbers."""
    kinds = {a.dtype.kind for a in arrays_of(sample)[0]}
    return "f" in kinds and "c" not in kinds


def inner(a: Any, b: Any) -> float:
    """The real inner product."""
    return float(np.sum(np.conj(np.asarray(a)) * np.asarray(b)).real)


@first_calls([c for c in WITH_GRADIENT if not c[0].no_differences], lambda sample: True)
def test_gradient_is_that_of_finite_differences(row: OpInfo, sample: Sample, x64: None) -> None:
    trial = Trial(row, sample).as_dtypes(np.float64, np.complex128)
    points = [trial.arrays[i] for i in trial.places]
    directions = [np.asarray(d) for d in trial.cotangents(points)]
    if row.direction is not None:
        directions = [row.direction(d) if d.shape[-1] == d.shape[-2] else d for d in directions]
    inputs, outs = trial.run()
    outs = [o for o in outs if is_float(o)]
    assert {o.dtype for o in outs} <= {dg.float64, dg.complex128}
    # Where a result is infinite, as behind a mask, there is no difference to take.
    cotangents = [
        np.where(np.isfinite(np.asarray(o.detach())), c, 0)
        for o, c in zip(outs, trial.cotangents(outs), strict=True)
    ]
    grads = dg.autograd.grad(outs, inputs, [dg.tensor(c) for c in cotangents])
    step = 1e-6

    def moved(by: float) -> float:
        for place, point, direction in zip(trial.places, points, directions, strict=True):
            trial.arrays[place] = point + by * direction
        values = [o for o in trial.run(requires_grad=False)[1] if is_float(o)]
        return sum(
            inner(c, np.where(c == 0, 0, np.asarray(v)))
            for c, v in zip(cotangents, values, strict=True)
        )

    slope = (moved(step) - moved(-step)) / (2 * step)
    along = sum(inner(g, d) for g, d in zip(grads, directions, strict=True))
    np.testing.assert_allclose(along, slope, rtol=1e-5, atol=1e-5)


@first_calls(CALLS, has_real_floats_only)
def test_bfloat16_stays_and_is_as_precise(row: OpInfo, sample: Sample) -> None:
    check_sixteen_bits(row, sample, "bfloat16")


# An operator is one function for both dtypes, so a third of the rows shows what float16 has of its
# own.
@first_calls(CALLS, has_real_floats_only, every=3)
def test_float16_stays_and_is_as_precise(row: OpInfo, sample: Sample) -> None:
    check_sixteen_bits(row, sample, "float16")


def check_sixteen_bits(row: OpInfo, sample: Sample, dtype: str) -> None:
    half = getattr(dg, dtype)
    trial = Trial(row, sample).as_dtypes(half.dtype, np.complex64)
    wide = Trial(row, sample).as_dtypes(half.dtype, np.complex64)
    wide = wide.as_dtypes(np.float32, np.complex64)
    refused = row.no_half if isinstance(row.no_half, str) else row.no_half.get(dtype)
    if refused:
        with pytest.raises((RuntimeError, TypeError, ValueError), match=refused):
            trial.run(requires_grad=False)
        return
    tolerance = 16 * float(jnp.finfo(half.dtype).eps)

    def compare(got: Any, want: Any) -> None:
        value, exact = (np.asarray(v.detach()).astype(np.complex64) for v in (got, want))
        size = np.abs(exact[np.isfinite(exact)]).max(initial=1 / 16)
        np.testing.assert_allclose(value, exact, rtol=0, atol=tolerance * size)

    expected = trial.reference_shapes()
    inputs, outs = trial.run(requires_grad=row.gradient)
    wide_inputs, wide_outs = wide.run(requires_grad=row.gradient)
    for got, want, twin in zip(outs, wide_outs, expected, strict=True):
        assert got.dtype == twin.dtype
        compare(got, want)
    if not row.gradient:
        return
    outs, wide_outs = ([o for o in every if is_float(o)] for every in (outs, wide_outs))
    given = trial.cotangents(outs)
    grads = dg.autograd.grad(outs, inputs, [dg.tensor(c) for c in given])
    wide_given = [
        dg.tensor(np.asarray(c), dtype=o.dtype) for c, o in zip(given, wide_outs, strict=True)
    ]
    wide_grads = dg.autograd.grad(wide_outs, wide_inputs, wide_given)
    for got, want in zip(grads, wide_grads, strict=True):
        assert got.dtype == half
        compare(got, want)


def without_elements(sample: Sample, dim: int) -> Sample:
    """The call with length 0 at `dim`, in every array that is as long there as the first one."""
    arrays, rebuild = arrays_of(sample)
    length = next(a.shape[dim] for a in arrays if a.ndim)
    every = (slice(None),) * dim if dim >= 0 else (...,)
    cut = [a[(*every, slice(0))] if a.ndim and a.shape[dim] == length else a for a in arrays]
    return Sample(rebuild(cut), sample.kwargs)


def is_ours(error: BaseException) -> bool:
    """Whether dyngraph itself raised it, and not a library that it called."""
    raised = traceback.extract_tb(error.__traceback__)[-1]
    return Path(raised.filename).is_relative_to(Path(dg.__file__).parent)


@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")  # in JAX's attention
@first_calls(CALLS, lambda sample: any(a.ndim for a in arrays_of(sample)[0]))
def test_tensors_of_length_0_are_as_the_twin_has_them(row: OpInfo, sample: Sample) -> None:
    check_without_elements(row, sample, 0)


@pytest.mark.filterwarnings("ignore:divide by zero:RuntimeWarning")  # in JAX's attention
@first_calls(CALLS, lambda sample: any(a.ndim > 1 for a in arrays_of(sample)[0]))
def test_rows_of_length_0_are_as_the_twin_has_them(row: OpInfo, sample: Sample) -> None:
    check_without_elements(row, sample, -1)


def check_without_elements(row: OpInfo, sample: Sample, dim: int) -> None:
    trial = Trial(row, without_elements(sample, dim))
    try:
        expected = trial.reference_shapes()
        if any(e.size for e in expected):
            expected = run_whole(trial.reference, *trial.floats())
    except Exception:
        expected = None
    inputs, outs, refused = [], [], None
    try:
        inputs, outs = trial.run(requires_grad=row.gradient)
    except (AssertionError, IndexError, RuntimeError, TypeError, ValueError) as error:
        refused = error
    if refused is not None:
        assert is_ours(refused)
        if expected is not None:
            assert row.refuses_empty and re.search(row.refuses_empty, str(refused)), refused
        return
    if not row.no_empty:
        assert expected is not None, "the twin refuses this"
        for got, want in zip(outs, expected, strict=True):
            assert (tuple(got.shape), got.dtype) == (want.shape, want.dtype)
            if want.size:
                trial.close(got, want)
    outs = [o for o in outs if o.requires_grad]
    if outs:
        ones = [dg.tensor(np.ones(o.shape), dtype=o.dtype) for o in outs]
        grads = dg.autograd.grad(outs, inputs, ones)
        assert [(g.shape, g.dtype) for g in grads] == [(x.shape, x.dtype) for x in inputs]


@cases([(row, i) for row, i in WITH_GRADIENT if i == 0])
def test_tangent_is_that_of_the_jax_twin(row: OpInfo, sample: Sample) -> None:
    trial = Trial(row, sample)
    twin = twin_of(row, sample)
    with fwd.dual_level():
        values = [dg.tensor(a) for a in trial.arrays]
        for place, direction in zip(trial.places, twin.directions, strict=True):
            values[place] = fwd.make_dual(values[place], dg.tensor(direction))
        outs = flat(operator(row.name)(*trial.rebuild(values), **trial.kwargs))
        got = [fwd.unpack_dual(o).tangent for o in outs if is_float(o)]
    assert len(got) == len(twin.tangents)
    for tangent, expected in zip(got, twin.tangents, strict=True):
        assert tangent is not None
        assert tangent.dtype == expected.dtype
        trial.close(tangent, expected)


@pytest.mark.filterwarnings("ignore:.*target size:UserWarning")
@first_calls(
    [c for c in WITH_GRADIENT if c[0].broadcasts], lambda sample: len(arrays_of(sample)[0]) > 1
)
def test_each_input_broadcasts_and_its_gradient_is_summed(row: OpInfo, sample: Sample) -> None:
    trial = Trial(row, sample)
    shape = np.broadcast_shapes(*(a.shape for a in trial.arrays))
    whole = [np.broadcast_to(a, shape) for a in trial.arrays]

    def gradients(place: int, values: np.ndarray) -> tuple[Any, list[Any]]:
        trial.arrays = [*whole[:place], values, *whole[place + 1 :]]
        inputs, (out,) = trial.run()
        return out, list(
            dg.autograd.grad(out, inputs, [dg.tensor(c) for c in trial.cotangents([out])])
        )

    for place in range(len(whole)):
        one = whole[place][:1]
        out, grads = gradients(place, one)
        same, wanted = gradients(place, np.broadcast_to(one, shape))
        trial.close(out, np.asarray(same.detach()))
        if place in trial.places:
            i = trial.places.index(place)
            wanted[i] = wanted[i].sum(0, keepdim=True)
        for got, want in zip(grads, wanted, strict=True):
            assert got.shape == want.shape
            trial.close(got, want)
