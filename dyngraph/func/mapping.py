"""vmap: a function of one example as a function of a batch of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax

from dyngraph.func import trees
from dyngraph.lifting import Mapped, run_mapped
from dyngraph.ops.joining import cat
from dyngraph.random import get_rng_state, set_rng_state
from dyngraph.tensor import Tensor

__all__ = ["vmap"]

InDims = int | tuple[Any, ...]
OutDims = int | tuple[Any, ...] | None


def vmap(
    func: Callable[..., Any],
    in_dims: InDims = 0,
    out_dims: OutDims = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """The function that applies `func`, written for one example, to all examples at once.

    `in_dims` says which dim of each input counts the examples: a number for all, or a structure
    like the arguments, None where all examples share the input. `out_dims` says the same of the
    outputs, where None means what is no batch. Arguments given by keyword are shared. `func` runs
    once, on tensors without that dim, and may do what programs do that need no values: write in
    place, call `autograd.grad`, map again. Derivatives of every order go through the result.

    `randomness` says what random functions do inside: raise ("error"), draw the same for all
    examples ("same"), or for each of them ("different"). `chunk_size` bounds how many examples run
    at once.

    Raises ValueError where dims and structures do not fit, sizes differ, or an output is no tensor;
    RuntimeError where `func` asks for a value, by `.item()` or in an `if`, and where it writes what
    differs from example to example to a tensor from outside.

    >>> dot = dg.func.vmap(lambda x, y: (x * y).sum(), in_dims=(0, None))
    >>> dot(dg.tensor([[1.0, 2.0], [3.0, 4.0]]), dg.tensor([1.0, 10.0]))
    tensor([21., 43.])
    """
    if randomness not in ("error", "same", "different"):
        raise RuntimeError(
            "Only allowed values for randomness are 'error', 'different', or 'same'. Got "
            f"{randomness}"
        )
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(
            f"vmap: chunk_size should be None or greater than 0. (got {chunk_size}). Pass how many "
            "examples may run at once."
        )

    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        call = _Call(func, in_dims, out_dims, randomness)
        call.read(args)
        if chunk_size is None:
            outputs = call.run(call.leaves, kwargs)
        else:
            outputs = call.run_in_chunks(chunk_size, kwargs)
        return trees.unflatten(call.out_spec, outputs)

    return mapped


class _Call:
    """One call of a mapped function."""

    out_spec: trees.Spec

    def __init__(
        self, func: Callable[..., Any], in_dims: Any, out_dims: Any, randomness: str
    ) -> None:
        self.func = func
        self.name = _name_of(func)
        self.in_dims = in_dims
        self.out_dims = out_dims
        self.randomness = randomness
        for dim in trees.flatten(out_dims)[0]:
            if dim is not None and not isinstance(dim, int):
                raise ValueError(
                    f"vmap({self.name}, ..., out_dims={out_dims}): `out_dims` must be an int, None "
                    "or a python collection of ints representing where in the outputs the vmapped "
                    "dimension should appear."
                )

    def read(self, args: tuple[Any, ...]) -> None:
        """Finds the tensors among the arguments, and which of their dims count the examples."""
        where = f"vmap({self.name}, in_dims={self.in_dims}, ...)(<inputs>)"
        if not isinstance(self.in_dims, (int, tuple)):
            raise ValueError(
                f"{where}: expected `in_dims` to be int or a (potentially nested) tuple matching "
                f"the structure of inputs, got: {type(self.in_dims).__name__}."
            )
        if not args:
            raise ValueError(
                f"vmap({self.name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or "
                "you are trying to vmap over a function with no inputs. The latter is unsupported."
            )
        self.leaves, self.spec = trees.flatten(args)
        dims = trees.broadcast(self.spec, self.in_dims)
        if dims is None:
            raise ValueError(
                f"{where}: in_dims is not compatible with the structure of `inputs`. in_dims has "
                f"structure {trees.flatten(self.in_dims)[1]} but inputs has structure {self.spec}."
            )
        self.dims = [_input_dim(where, x, d) for x, d in zip(self.leaves, dims, strict=True)]
        self.size_of(self.leaves)

    def size_of(self, leaves: Sequence[Any]) -> int:
        """How many examples there are."""
        pairs = zip(leaves, self.dims, strict=True)
        sizes = [leaf.shape[dim] for leaf, dim in pairs if dim is not None]
        if not sizes:
            raise ValueError(
                "vmap: Expected at least one Tensor to vmap over: all in_dims are None. Call the "
                "function itself."
            )
        if len(set(sizes)) > 1:
            raise ValueError(
                "vmap: Expected all tensors to have the same size in the mapped dimension, got "
                f"sizes {sizes} for the mapped dimension. Pass None in in_dims for what all "
                "examples share."
            )
        return sizes[0]

    def run(self, leaves: Sequence[Any], kwargs: dict[str, Any]) -> list[Tensor]:
        """The outputs for these examples, one after the other."""
        places = [i for i, dim in enumerate(self.dims) if dim is not None]
        size = self.size_of(leaves)
        inputs = [_moved(leaves[i], self.dims[i] or 0, 0) for i in places]
        tensors: list[int] = []
        outputs: list[Any] = []

        def of_example(*examples: Tensor) -> list[Tensor]:
            given = list(leaves)
            for place, example in zip(places, examples, strict=True):
                given[place] = example
            result = self.func(*trees.unflatten(self.spec, given), **kwargs)
            outputs[:], self.out_spec = trees.flatten(result)
            tensors[:] = [i for i, out in enumerate(outputs) if isinstance(out, Tensor)]
            self.check_outputs(outputs)
            return [outputs[i] for i in tensors]

        try:
            results = run_mapped(of_example, inputs, size, self.randomness)
        except _NEEDS_VALUES as error:
            raise RuntimeError(
                "vmap: We do not support batching operators that can output dynamic shape, or that "
                "need a value: it may differ from example to example. Use a form whose shape "
                "depends on shapes alone, such as dg.where() in place of a boolean mask."
            ) from error
        dims = self.output_dims()
        for place, result in zip(tensors, results, strict=True):
            outputs[place] = self.placed(result, dims[place], size)
        return outputs

    def output_dims(self) -> list[int | None]:
        """For each output the dim that counts the examples."""
        dims = trees.broadcast(self.out_spec, self.out_dims)
        if dims is None and isinstance(self.out_dims, tuple) and len(self.out_dims) == 1:
            dims = trees.broadcast(self.out_spec, self.out_dims[0])
        if dims is None:
            raise ValueError(
                f"vmap({self.name}, ..., out_dims={self.out_dims})(<inputs>): out_dims is not "
                f"compatible with the structure of `outputs`. out_dims has structure "
                f"{trees.flatten(self.out_dims)[1]} but outputs has structure {self.out_spec}."
            )
        return dims

    def check_outputs(self, outputs: Sequence[Any]) -> None:
        for output, dim in zip(outputs, self.output_dims(), strict=True):
            if dim is not None and not isinstance(output, Tensor):
                raise ValueError(
                    f"vmap({self.name}, ...): `{self.name}` must only return Tensors, got type "
                    f"{type(output).__name__}. Did you mean to set out_dims= to None for output?"
                )

    def placed(self, result: Mapped, dim: int | None, size: int) -> Tensor:
        """An output with its examples counted by `dim`."""
        tensor, batched = result
        if dim is None:
            if batched:
                raise ValueError(
                    f"vmap({self.name}, ...): `{self.name}` can not return a BatchedTensor when "
                    "out_dim is None: it differs from example to example. Pass a dim for it in "
                    "out_dims."
                )
            return tensor
        return _moved(tensor if batched else tensor.expand(size, *tensor.shape), 0, dim)

    def run_in_chunks(self, chunk_size: int, kwargs: dict[str, Any]) -> list[Tensor]:
        """The outputs for all examples, of which `chunk_size` run at once."""
        size = self.size_of(self.leaves)
        state = get_rng_state() if self.randomness == "same" else None
        found = []
        for start in range(0, max(size, 1), chunk_size):
            if state is not None:
                set_rng_state(state)
            length = min(chunk_size, size - start)
            chunk = [
                leaf if dim is None else leaf.narrow(dim, start, length)
                for leaf, dim in zip(self.leaves, self.dims, strict=True)
            ]
            found.append(self.run(chunk, kwargs))
        pairs = zip(zip(*found, strict=True), self.output_dims(), strict=True)
        return [parts[0] if dim is None else cat(parts, dim) for parts, dim in pairs]


_NEEDS_VALUES = (
    jax.errors.ConcretizationTypeError,
    jax.errors.TracerArrayConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.NonConcreteBooleanIndexError,
)


def _input_dim(where: str, leaf: Any, dim: Any) -> int | None:
    if dim is None:
        return None
    if not isinstance(dim, int):
        raise ValueError(
            f"{where}: Got in_dim={dim} for an input but in_dim must be either an integer "
            "dimension or None."
        )
    if not isinstance(leaf, Tensor):
        raise ValueError(
            f"{where}: Got in_dim={dim} for an input but the input is of type "
            f"{type(leaf).__name__}. We cannot vmap over non-Tensor arguments, please use None as "
            "the respective in_dim"
        )
    if not -leaf.ndim <= dim < leaf.ndim:
        raise ValueError(
            f"{where}: Got in_dim={dim} for some input, but that input is a Tensor of "
            f"dimensionality {leaf.ndim} so expected in_dim to satisfy -{leaf.ndim} <= in_dim < "
            f"{leaf.ndim}."
        )
    return dim % leaf.ndim


def _moved(tensor: Tensor, source: int, destination: int) -> Tensor:
    return tensor if source == destination else tensor.movedim(source, destination)


def _name_of(func: Any) -> str:
    if isinstance(func, functools.partial):
        return f"functools.partial({_name_of(func.func)}, ...)"
    return getattr(func, "__name__", repr(func))
