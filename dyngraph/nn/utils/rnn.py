"""Sequences of unequal length in one batch: packed, as recurrent networks take them, and padded.

Packed, the steps of all sequences follow each other, every sequence's first step first, the longest
sequence before the others: `batch_sizes` says how many sequences have each step. Lengths and
`batch_sizes` are read on the host; where lengths change from batch to batch, so do shapes, and each
new shape compiles anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from dyngraph.ops.from_data import tensor
from dyngraph.ops.host_values import as_int, described, from_host, on_host
from dyngraph.ops.joining import stack
from dyngraph.ops.packing import active, pack_rows, pad_rows, places_of, rows_of
from dyngraph.ops.padding import pad
from dyngraph.ops.permutation import transpose
from dyngraph.ops.slices import index_select
from dyngraph.tensor import Tensor


class _Fields(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Fields):
    """A batch of sequences, packed: the steps, and how many sequences have each of them.

    `sorted_indices` says which sequence of the caller's stands where, `unsorted_indices` is its
    inverse; both are None where the caller's sequences were sorted. Made by `pack_sequence` and
    `pack_padded_sequence`. Raises AssertionError for data without batch sizes.

    >>> packed = dg.nn.utils.rnn.pack_sequence([dg.tensor([1, 2, 3]), dg.tensor([4, 5])])
    >>> packed.data, packed.batch_sizes
    (tensor([1, 4, 2, 5, 3]), tensor([2, 2, 1]))
    """

    __slots__ = ()

    def __new__(
        cls,
        data: Any,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        if batch_sizes is None:
            if not (isinstance(data, (list, tuple)) and len(data) == 2):
                raise AssertionError(
                    "Expected data to be a list or tuple of length 2, with its batch_sizes, where "
                    f"batch_sizes is not given; got {type(data).__name__}"
                )
            data, sizes = data
        else:
            sizes = batch_sizes
        return super().__new__(cls, data, sizes, sorted_indices, unsorted_indices)

    def _map(self, change: Callable[[Tensor], Tensor]) -> PackedSequence:
        """With the data changed, and the indices where the data then is."""
        data = change(self.data)
        if data is self.data:
            return self
        indices = [None if i is None else i.to(data.device) for i in self[2:]]
        return type(self)(data, self.batch_sizes, *indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """With its data of another dtype or on another device: arguments as of `Tensor.to`.

        Returns the same where nothing changes.
        """
        return self._map(lambda data: data.to(*args, **kwargs))

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """On a GPU, as `Tensor.cuda`."""
        return self._map(lambda data: data.cuda(*args, **kwargs))

    def cpu(self) -> PackedSequence:
        """On the CPU."""
        return self._map(lambda data: data.cpu())

    def double(self) -> PackedSequence:
        """With data of float64."""
        return self._map(lambda data: data.double())

    def float(self) -> PackedSequence:
        """With data of float32."""
        return self._map(lambda data: data.float())

    def half(self) -> PackedSequence:
        """With data of float16."""
        return self._map(lambda data: data.half())

    def long(self) -> PackedSequence:
        """With data of int64."""
        return self._map(lambda data: data.long())

    def int(self) -> PackedSequence:
        """With data of int32."""
        return self._map(lambda data: data.int())

    def short(self) -> PackedSequence:
        """With data of int16."""
        return self._map(lambda data: data.short())

    def char(self) -> PackedSequence:
        """With data of int8."""
        return self._map(lambda data: data.char())

    def byte(self) -> PackedSequence:
        """With data of uint8."""
        return self._map(lambda data: data.byte())

    @property
    def is_cuda(self) -> bool:
        """Whether the data is on a GPU."""
        return self.data.is_cuda

    def pin_memory(self) -> PackedSequence:
        """Itself, as `Tensor.pin_memory` is: JAX copies to devices by itself."""
        return self._map(lambda data: data.pin_memory())

    def is_pinned(self) -> bool:
        """Whether the data is in pinned memory."""
        return self.data.is_pinned()


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The permutation that undoes `permutation`, (n,) integers; None for None.

    >>> dg.nn.utils.rnn.invert_permutation(dg.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    if permutation is None:
        return None
    return from_host(as_int(np.argsort(on_host("invert_permutation", permutation))), permutation)


def pack_padded_sequence(
    input: Tensor,
    lengths: Tensor | Sequence[int],
    batch_first: bool = False,
    enforce_sorted: bool = True,
) -> PackedSequence:
    """Packs padded sequences, (time, batch, ...) or with `batch_first` (batch, time, ...).

    `lengths` are those of the sequences, which stand in order of them, the longest first, unless
    `enforce_sorted` is False: then they are sorted here. Raises RuntimeError for lengths that do
    not fit, are not sorted or not positive.

    >>> x = dg.tensor([[1, 2, 0], [3, 0, 0], [4, 5, 6]])
    >>> dg.nn.utils.rnn.pack_padded_sequence(x, [2, 1, 3], True, enforce_sorted=False).data
    tensor([4, 1, 3, 5, 2, 6])
    """
    counts = on_host("pack_padded_sequence", lengths)
    if counts.ndim != 1:
        raise RuntimeError(
            f"'lengths' argument should be a 1D CPU int64 tensor, but got {counts.ndim}D"
        )
    counts = counts.astype(np.int64)
    order = None
    if not enforce_sorted:
        places = np.argsort(-counts, kind="stable")
        order, counts = from_host(as_int(places), input), counts[places]
        input = index_select(input, 0 if batch_first else 1, order)
    if batch_first:
        input = transpose(input, 0, 1)
    times, batch = _time_and_batch(input)
    if len(counts) != batch:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(counts)} "
            f"(batch_size={batch})"
        )
    if (counts <= 0).any():
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' "
            f"that is <= 0: {counts.tolist()}"
        )
    if (np.diff(counts) > 0).any():
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True, got "
            f"{counts.tolist()}. You can pass `enforce_sorted=False`."
        )
    if counts[0] > times:
        raise RuntimeError(
            f"Expected lengths of at most {times}, the steps that input has, got {counts.tolist()}"
        )
    sizes = (counts > np.arange(counts[0])[:, None]).sum(1)
    data = pack_rows(input, from_host(places_of(sizes), input))
    return PackedSequence(data, tensor(sizes), order)


def _time_and_batch(input: Tensor) -> tuple[int, int]:
    shape = described(input).shape
    if len(shape) < 2:
        raise IndexError(
            f"pack_padded_sequence expects input of (time, batch, ...), got {len(shape)} dims"
        )
    return shape[0], shape[1]


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The sequences, padded to the longest or to `total_length`, and their lengths (batch,).

    They come in the order in which they were packed, as (time, batch, ...), or (batch, time, ...)
    with `batch_first`. Raises ValueError where `total_length` is too short.

    >>> packed = dg.nn.utils.rnn.pack_sequence([dg.tensor([1, 2, 3]), dg.tensor([4, 5])])
    >>> dg.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True, padding_value=-1)
    (tensor([[ 1,  2,  3],
            [ 4,  5, -1]]), tensor([3, 2]))
    """
    sizes = on_host("pad_packed_sequence", sequence.batch_sizes)
    times = len(sizes)
    if total_length is not None:
        if total_length < times:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, "
                f"but got total_length={total_length} and max sequence length being {times}"
            )
        times = total_length
    rows, counts = rows_of(sizes, times), active(sizes).sum(0)
    if sequence.unsorted_indices is not None:
        order = on_host("pad_packed_sequence", sequence.unsorted_indices)
        rows, counts = rows[:, order], counts[order]
    if batch_first:
        rows = rows.T
    padded = pad_rows(sequence.data, from_host(rows, sequence.data), padding_value)
    return padded, tensor(counts)


def pad_sequence(
    sequences: Iterable[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Stacks sequences of (length, ...), padded to the longest on the "right" or "left".

    The result is (time, batch, ...), or (batch, time, ...) with `batch_first`. Raises RuntimeError
    for no sequences, another side, and shapes that differ in more than length.

    >>> dg.nn.utils.rnn.pad_sequence([dg.tensor([1, 2]), dg.tensor([3])], batch_first=True)
    tensor([[1, 2],
            [3, 0]])
    """
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            "pad_sequence: Expected iterable for input sequences, but got arg of type: "
            f"{type(sequences)}"
        )
    if padding_side not in ("left", "right"):
        raise RuntimeError(
            f"Expected padding_side to be one of left or right, but got {padding_side}."
        )
    parts = list(sequences)
    if not parts:
        raise RuntimeError("received an empty list of sequences")
    shapes = [described(part).shape for part in parts]
    if any(len(s) != len(shapes[0]) or s[1:] != shapes[0][1:] for s in shapes):
        raise RuntimeError(
            "pad_sequence expects sequences that differ in their length only, got shapes "
            f"{[list(s) for s in shapes]}"
        )
    times = max(shape[0] for shape in shapes)
    if any(shape[0] != times for shape in shapes):
        others = (0, 0) * (len(shapes[0]) - 1)
        for i, shape in enumerate(shapes):
            missing = times - shape[0]
            around = (0, missing) if padding_side == "right" else (missing, 0)
            parts[i] = pad(parts[i], (*others, *around), value=padding_value)
    return stack(parts, 0 if batch_first else 1)


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor | Sequence[int], batch_first: bool = False
) -> list[Tensor]:
    """The sequences of `lengths` at the beginning of padded ones, as a list.

    Unlike in PyTorch, the caller's tensor stays as it was. Raises ValueError where there are not
    as many lengths as sequences.

    >>> padded = dg.tensor([[1, 2], [3, 0]])
    >>> dg.nn.utils.rnn.unpad_sequence(padded, dg.tensor([2, 1]), batch_first=True)
    [tensor([1, 2]), tensor([3])]
    """
    counts = on_host("unpad_sequence", lengths).tolist()
    if not batch_first:
        padded_sequences = transpose(padded_sequences, 0, 1)
    if len(counts) != described(padded_sequences).shape[0]:
        raise ValueError(
            f"unpad_sequence expects a length for each of {described(padded_sequences).shape[0]} "
            f"sequences, got {len(counts)}"
        )
    return [padded_sequences[i, :count] for i, count in enumerate(counts)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Packs sequences of (length, ...), sorted by length unless `enforce_sorted` is False.

    Raises RuntimeError as `pad_sequence` and `pack_padded_sequence` do.

    >>> parts = [dg.tensor([1]), dg.tensor([2, 3])]
    >>> dg.nn.utils.rnn.pack_sequence(parts, enforce_sorted=False).data
    tensor([2, 1, 3])
    """
    lengths = [described(sequence).shape[0] for sequence in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences that were packed, in the caller's order.

    >>> packed = dg.nn.utils.rnn.pack_sequence([dg.tensor([1, 2, 3]), dg.tensor([4, 5])])
    >>> dg.nn.utils.rnn.unpack_sequence(packed)
    [tensor([1, 2, 3]), tensor([4, 5])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]
