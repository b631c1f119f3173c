"""PyTorch's `torch.fft`."""

__all__: list[str] = []
