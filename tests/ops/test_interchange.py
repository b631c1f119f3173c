"""Tensors of buffers, files and other libraries' arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import dyngraph as dg

BYTES = np.arange(4, dtype=np.int16).tobytes()


def test_buffer_is_read_from_an_offset() -> None:
    assert dg.frombuffer(BYTES, dtype=dg.int16).tolist() == [0, 1, 2, 3]
    assert dg.frombuffer(BYTES, dtype=dg.int16, count=2, offset=2).tolist() == [1, 2]


def test_buffer_is_copied() -> None:
    buffer = bytearray(BYTES)
    made = dg.frombuffer(buffer, dtype=dg.int16)
    buffer[0] = 9
    assert made.tolist() == [0, 1, 2, 3]


REFUSED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "list": ([1], {}, r"Use dg\.tensor\(\) for lists"),
    "empty": (b"", {}, "must not be 0"),
    "no elements": (BYTES, {"count": 0}, "must not be 0"),
    "too many": (BYTES, {"count": 5}, r"requested buffer length \(5 \* 2 bytes\)"),
    "odd": (BYTES, {"offset": 1}, "must be a multiple of element size"),
    "beyond": (BYTES, {"offset": 8}, "no greater than buffer length"),
    "before": (BYTES, {"offset": -1}, "must be non-negative"),
}


@pytest.mark.parametrize(("buffer", "options", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_buffer_that_does_not_fit_is_refused(
    buffer: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        dg.frombuffer(buffer, dtype=dg.int16, **options)


def test_file_is_read_up_to_a_size(tmp_path: Path) -> None:
    file = tmp_path / "numbers"
    np.arange(4, dtype=np.float32).tofile(file)
    made = dg.from_file(str(file), size=3, requires_grad=True)
    assert made.tolist() == [0.0, 1.0, 2.0]
    assert made.requires_grad
    with pytest.raises(RuntimeError, match=r"at least 5 \* 4 bytes.* Pass the size that it has"):
        dg.from_file(str(file), size=5)
    with pytest.raises(RuntimeError, match=r"Pass shared=False, and write the file anew"):
        dg.from_file(str(file), shared=True, size=3)


def test_arrays_of_others_come_by_dlpack() -> None:
    for array in (np.ones(2, np.float32), jnp.ones(2), dg.ones(2)):
        assert dg.from_dlpack(array).tolist() == [1.0, 1.0]
        assert dg.from_dlpack(array, device="cpu", copy=True).tolist() == [1.0, 1.0]


class Capsule:
    """A capsule with the methods of the array that it was made of."""

    def __init__(self, x: dg.Tensor) -> None:
        self.made, self.device = dg.to_dlpack(x), x.__dlpack_device__()

    def __dlpack__(self, **options: Any) -> Any:
        return self.made

    def __dlpack_device__(self) -> Any:
        return self.device


def test_capsule_is_read_by_others() -> None:
    assert jnp.from_dlpack(Capsule(dg.tensor([1.0, 2.0]))).tolist() == [1.0, 2.0]


def test_what_speaks_no_dlpack_is_refused() -> None:
    with pytest.raises(TypeError, match="Pass the array itself rather than a capsule"):
        dg.from_dlpack(dg.to_dlpack(dg.ones(2)))
    with pytest.raises(TypeError, match="must be Tensor, not ndarray"):
        dg.to_dlpack(np.ones(2))  # type: ignore[arg-type]
