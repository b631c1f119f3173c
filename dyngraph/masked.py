"""PyTorch's `torch.masked`."""

__all__: list[str] = []
