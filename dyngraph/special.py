"""PyTorch's `torch.special`, and what else `jax.scipy.special` has."""

__all__: list[str] = []
