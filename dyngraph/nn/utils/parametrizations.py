"""Parametrizations that are often used: weight norm, spectral norm, orthogonal matrices."""

from __future__ import annotations

from typing import Any

from dyngraph import modes
from dyngraph.linalg import householder_product, matrix_exp, solve
from dyngraph.nn import functional as F
from dyngraph.nn.modules.conv import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from dyngraph.nn.modules.module import Module
from dyngraph.nn.utils import norms
from dyngraph.nn.utils.parametrize import register_parametrization
from dyngraph.ops.decompositions import geqrf
from dyngraph.ops.filled import eye, zeros_like
from dyngraph.ops.joining import cat
from dyngraph.ops.norms import norm_except_dim
from dyngraph.tensor import Tensor

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


def tensor_of(module: Module, name: str) -> Tensor:
    """The tensor of that name; ValueError where there is none."""
    tensor = getattr(module, name, None)
    if not isinstance(tensor, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return tensor


def output_dim(module: Module, dim: int | None) -> int:
    """The dim of a weight that counts the outputs, unless `dim` says which."""
    if dim is not None:
        return dim
    return int(isinstance(module, ConvTranspose1d | ConvTranspose2d | ConvTranspose3d))


class _WeightNorm(Module):
    def __init__(self, dim: int | None = 0) -> None:
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return norms.weight_norm(weight_v, weight_g, dim=self.dim)

    def right_inverse(self, weight: Tensor) -> tuple[Tensor, Tensor]:
        return norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Trains a tensor's lengths and directions apart (Salimans and Kingma, 2016); returns `module`.

    `original0` holds the length for each index of `dim`, or of all where it is None, `original1`
    the directions. Loads the names of the older `nn.utils.weight_norm` too.

    >>> layer = dg.nn.utils.parametrizations.weight_norm(dg.nn.Linear(2, 1))
    >>> list(layer.state_dict())
    ['bias', 'parametrizations.weight.original0', 'parametrizations.weight.original1']
    """
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def rename(state_dict: dict[str, Any], prefix: str, *_: Any) -> None:
        old = [f"{prefix}{name}_g", f"{prefix}{name}_v"]
        if all(key in state_dict for key in old):
            for i, key in enumerate(old):
                new = f"{prefix}parametrizations.{name}.original{i}"
                state_dict[new] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(rename)
    return module


class _SpectralNorm(Module):
    def __init__(self, weight: Tensor, n_power_iterations: int, dim: int, eps: float) -> None:
        super().__init__()
        ndim = weight.ndim
        if not -ndim <= dim < ndim:
            raise IndexError(
                f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got "
                f"{dim})"
            )
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.dim = dim % ndim
        self.eps = eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            rows = weight.shape[self.dim]
            with modes.no_grad():
                for key, size in (("_u", rows), ("_v", weight.numel() // rows)):
                    drawn = weight.new_empty(size).normal_(0, 1)
                    self.register_buffer(key, F.normalize(drawn, dim=0, eps=eps))
            self._power_method(weight, 15)

    def _power_method(self, weight: Tensor, steps: int) -> None:
        arrays = [t._cell.array for t in (weight, self._u, self._v)]
        u, v = norms.power_method(*arrays, self.dim, steps, self.eps, False)
        self._u._write(u)
        self._v._write(v)

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return F.normalize(weight, dim=0, eps=self.eps)
        if self.training:
            self._power_method(weight, self.n_power_iterations)
        return norms.spectral_norm(weight, self._u.clone(), self._v.clone(), dim=self.dim)

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(
    module: Module,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Module:
    """Divides a tensor by its largest singular value (Miyato et al., 2018); returns `module`.

    That is found by `n_power_iterations` steps in each forward pass of the training, which go on
    from the vectors of the last one. `dim` counts the outputs, 0 unless for a transposed
    convolution. Raises ValueError for no tensor or no steps, IndexError for a dim that is none.

    >>> layer = dg.nn.utils.parametrizations.spectral_norm(dg.nn.Linear(3, 3))
    >>> bool(dg.linalg.matrix_norm(layer.eval().weight, 2) < 1.1)
    True
    """
    weight = tensor_of(module, name)
    made = _SpectralNorm(weight, n_power_iterations, output_dim(module, dim), eps)
    return register_parametrization(module, name, made)


class _Orthogonal(Module):
    """An orthogonal matrix, by one of three maps; where `base` is, times that."""

    def __init__(self, weight: Tensor, orthogonal_map: str, *, use_trivialization: bool) -> None:
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape = weight.shape
        self.orthogonal_map = orthogonal_map
        self.use_trivialization = use_trivialization
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        wide = X.size(-2) < X.size(-1)
        tall = X.mT if wide else X
        n, k = tall.size(-2), tall.size(-1)
        if self.orthogonal_map == "householder":
            below = tall.tril(-1)
            tau = 2.0 / (1.0 + (below * below).sum(-2))
            signs = tall.diagonal(dim1=-2, dim2=-1).detach().sign().unsqueeze(-2)
            Q = householder_product(below, tau) * signs
        else:
            lower = tall.tril()
            if n != k:
                lower = cat([lower, tall.new_zeros(*tall.shape[:-2], n, n - k)], -1)
            skew = lower - lower.mH
            if self.orthogonal_map == "matrix_exp":
                Q = matrix_exp(skew)
            else:
                one = eye(n, dtype=skew.dtype, device=skew.device)
                Q = solve(one - skew / 2, one + skew / 2)
            Q = Q[..., :k] if n != k else Q
        if self.use_trivialization:
            Q = self.base @ Q
        return Q.mT if wide else Q

    def right_inverse(self, Q: Tensor) -> Tensor:
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {list(self.shape)}. Got a tensor "
                f"of shape {list(Q.shape)}."
            )
        with modes.no_grad():
            wide = Q.size(-2) < Q.size(-1)
            tall = Q.mT if wide else Q
            n, k = tall.size(-2), tall.size(-1)
            if not self.use_trivialization:
                return self._factored(tall, wide=wide)
            if n != k:
                drawn = tall.new_empty(*tall.shape[:-2], n, n - k).normal_()
                tall = cat([tall, drawn], -1)
            self.base = tall.clone() if n == k and _is_orthogonal(tall) else _made_orthogonal(tall)
            start = zeros_like(Q)
            start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
            return start

    def _factored(self, tall: Tensor, *, wide: bool) -> Tensor:
        if self.orthogonal_map != "householder":
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley "
                "parametrizations when use_trivialization=False."
            )
        A, tau = geqrf(tall)
        A = A.clone()
        diagonal = A.diagonal(dim1=-2, dim2=-1)
        diagonal.copy_(diagonal.sign() * (1 - 2 * (tau == 0.0).to(A.dtype)))
        return A.mT if wide else A


def _is_orthogonal(Q: Tensor) -> bool:
    n, k = Q.size(-2), Q.size(-1)
    step = 2.0**-52 if Q.itemsize // (2 if Q.is_complex() else 1) == 8 else 2.0**-23
    gap = (Q.mH @ Q - eye(k, dtype=Q.dtype, device=Q.device)).abs()
    return bool((gap <= 10 * n * step).all())


def _made_orthogonal(A: Tensor) -> Tensor:
    X, tau = geqrf(A)
    return householder_product(X, tau) * X.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


def orthogonal(
    module: Module,
    name: str = "weight",
    orthogonal_map: str | None = None,
    *,
    use_trivialization: bool = True,
) -> Module:
    """Keeps a matrix, or a batch of them, orthogonal, its columns or rows where it is not square;
    returns `module`.

    The map from any matrix is `"matrix_exp"`, `"cayley"` or `"householder"`; the first for square
    and complex ones, else the last. With `use_trivialization` it starts from the matrix made
    orthogonal, which is in the buffer `base` (Lezcano-Casado, 2019). Raises ValueError for no
    tensor, fewer than 2 dims, and another map.

    >>> layer = dg.nn.utils.parametrizations.orthogonal(dg.nn.Linear(2, 3))
    >>> bool(((layer.weight.T @ layer.weight - dg.eye(2)).abs() < 1e-5).all())
    True
    """
    weight = tensor_of(module, name)
    if weight.ndim < 2:
        raise ValueError(
            f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions."
        )
    if orthogonal_map is None:
        is_square = weight.size(-2) == weight.size(-1)
        orthogonal_map = "matrix_exp" if is_square or weight.is_complex() else "householder"
    if orthogonal_map not in ("matrix_exp", "cayley", "householder"):
        raise ValueError(
            'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: '
            f"{orthogonal_map}"
        )
    made = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    return register_parametrization(module, name, made, unsafe=True)
