"""Tables of vectors that are looked up by number: Embedding, EmbeddingBag."""

from __future__ import annotations

from typing import Any

from dyngraph import modes
from dyngraph.nn import functional as F, init
from dyngraph.nn.modules.module import Module
from dyngraph.nn.parameter import Parameter
from dyngraph.ops.filled import empty
from dyngraph.tensor import Tensor

__all__ = ["Embedding", "EmbeddingBag"]


class _Table(Module):
    weight: Parameter
    num_embeddings: int
    embedding_dim: int
    padding_idx: int | None

    def _make_weight(
        self, given: Tensor | None, device: Any, dtype: Any, *, requires_grad: bool = True
    ) -> None:
        shape = (self.num_embeddings, self.embedding_dim)
        padding_idx = self.padding_idx
        if padding_idx is not None:
            if not -self.num_embeddings <= padding_idx < self.num_embeddings:
                raise AssertionError(
                    f"Padding_idx must be within num_embeddings, got {padding_idx} for "
                    f"{self.num_embeddings}"
                )
            self.padding_idx = padding_idx % self.num_embeddings
        if given is None:
            self.weight = Parameter(empty(shape, device=device, dtype=dtype), requires_grad)
            self.reset_parameters()
            return
        if tuple(given.shape) != shape:
            raise AssertionError(
                "Shape of weight does not match num_embeddings and embedding_dim: "
                f"{list(given.shape)}, expected {list(shape)}"
            )
        self.weight = Parameter(given, requires_grad)

    def reset_parameters(self) -> None:
        """Draws the initial values anew: normal ones, zeros at `padding_idx`."""
        init.normal_(self.weight)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self) -> None:
        if self.padding_idx is not None:
            with modes.no_grad():
                self.weight[self.padding_idx].fill_(0)


def _table_size(embeddings: Tensor) -> tuple[int, int]:
    if embeddings.dim() != 2:
        raise AssertionError(
            "Embeddings parameter is expected to be 2-dimensional, got shape "
            f"{list(embeddings.shape)}"
        )
    rows, columns = embeddings.shape
    return rows, columns


class Embedding(_Table):
    """The rows of a table by their numbers; input: (...) of integers -> (..., embedding_dim).

    weight: (num_embeddings, embedding_dim) is drawn from the standard normal distribution. The row
    `padding_idx` starts as zeros and gets no gradient. Rows longer than `max_norm` by the norm
    `norm_type` are shortened, in place, when they are looked up. With `scale_grad_by_freq`, the
    gradient of a row is divided by how often it was asked for. `sparse` gradients are dense here.

    Raises AssertionError where `padding_idx` is no row, IndexError for an input that is none.

    >>> table = dg.nn.Embedding(4, 2, padding_idx=0)
    >>> table(dg.tensor([0, 3])).shape
    dyngraph.Size([2, 2])
    >>> table(dg.tensor(0)).tolist()
    [0.0, 0.0]
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = padding_idx
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        self._make_weight(_weight, device, dtype, requires_grad=not _freeze)

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self) -> str:
        usual = {
            "padding_idx": None,
            "max_norm": None,
            "norm_type": 2,
            "scale_grad_by_freq": False,
            "sparse": False,
        }
        others = [f", {n}={getattr(self, n)}" for n, v in usual.items() if getattr(self, n) != v]
        return f"{self.num_embeddings}, {self.embedding_dim}" + "".join(others)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """An Embedding of a table: (num_embeddings, embedding_dim), which is not trained unless
        `freeze=False`. Raises AssertionError where there are not 2 dims.

        >>> dg.nn.Embedding.from_pretrained(dg.ones(4, 2))(dg.tensor(3))
        tensor([1., 1.])
        """
        return cls(
            *_table_size(embeddings),
            padding_idx,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            sparse,
            _weight=embeddings,
            _freeze=freeze,
        )


class EmbeddingBag(_Table):
    """Sums, means or maxima of rows of a table.

    input: (bags, rows) of integers, or (rows,) with `offsets`: (bags,), where each bag begins ->
    (bags, embedding_dim). `mode` is `"sum"`, `"mean"` or `"max"`; with `"sum"` the rows may be
    weighted by `per_sample_weights`, as the input. With `include_last_offset` the last offset is
    where the last bag ends. The row `padding_idx` counts in no bag. The others as in Embedding.

    >>> bags = dg.nn.EmbeddingBag(4, 2, mode="sum")
    >>> bags(dg.tensor([[0, 3], [1, 1]])).shape
    dyngraph.Size([2, 2])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset
        self.padding_idx = padding_idx
        self._make_weight(_weight, device, dtype)

    def forward(
        self,
        input: Tensor,
        offsets: Tensor | None = None,
        per_sample_weights: Tensor | None = None,
    ) -> Tensor:
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        usual = {"max_norm": None, "norm_type": 2, "scale_grad_by_freq": False}
        others = [f", {n}={getattr(self, n)}" for n, v in usual.items() if getattr(self, n) != v]
        others.append(f", mode={self.mode!r}")
        if self.padding_idx is not None:
            others.append(f", padding_idx={self.padding_idx}")
        return f"{self.num_embeddings}, {self.embedding_dim}" + "".join(others)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:
        """An EmbeddingBag of a table, as `Embedding.from_pretrained`."""
        bag = cls(
            *_table_size(embeddings),
            max_norm,
            norm_type,
            scale_grad_by_freq,
            mode,
            sparse,
            embeddings,
            include_last_offset,
            padding_idx,
        )
        bag.weight.requires_grad = not freeze
        return bag
