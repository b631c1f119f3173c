"""PyTorch's `torch.linalg`."""

__all__: list[str] = []
