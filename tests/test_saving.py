"""What is saved comes back as it was, files are whole, and other files are read or refused."""

import io
import os
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy

import dyngraph as dg


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.safetensors"


def again(obj: Any, path: Path) -> Any:
    dg.save(obj, path)
    return dg.load(path)


@pytest.mark.parametrize(
    "obj",
    [
        None,
        [True, 1, -(2**70), 1.5, "text", b"bytes", 2j],
        {"a": {1: (1, [2, (3,)]), (4, "b"): []}, "": ()},
        [dg.bfloat16, dg.device("cpu")],
        [float("inf"), -0.0, 1e-320],
        {"dict": {"tuple": [], "tensor": "x"}},
    ],
)
def test_plain_values_come_back(obj: Any, path: Path) -> None:
    assert repr(again(obj, path)) == repr(obj)


def test_numbers_that_json_has_not_come_back(path: Path) -> None:
    nan, number = again([float("nan"), np.float32(0.1)], path)
    assert nan != nan and number == np.float32(0.1).item()


@pytest.mark.parametrize(
    "dtype", "bool uint8 int8 int16 int32 float16 bfloat16 float32 complex64".split()
)
@pytest.mark.parametrize("shape", [(), (0, 3), (2, 3)])
def test_tensor_of_any_dtype_and_shape_comes_back(dtype: str, shape: Any, path: Path) -> None:
    tensor = dg.ones(shape, dtype=getattr(dg, dtype))
    found = again(tensor, path)
    assert (found.dtype, found.shape) == (tensor.dtype, tensor.shape)
    assert found.tolist() == tensor.tolist()


def test_complex_128_comes_back(x64: None, path: Path) -> None:
    tensor = dg.tensor([1 + 2j, complex("nan-infj")], dtype=dg.complex128)
    found = again(tensor, path)
    assert found.dtype == dg.complex128
    assert str(found) == str(tensor)


def test_arrays_come_back_as_what_they_were(path: Path) -> None:
    array, other = again([np.arange(3), jnp.arange(3.0)], path)
    assert isinstance(array, np.ndarray) and array.dtype == np.int64
    assert isinstance(other, jax.Array) and other.tolist() == [0, 1, 2]


def test_requires_grad_is_kept(path: Path) -> None:
    found = again([dg.ones(1, requires_grad=True), dg.ones(1)], path)
    assert [t.requires_grad for t in found] == [True, False]
    assert all(t.is_leaf for t in found)


def test_tensor_that_is_there_twice_is_one_again(path: Path) -> None:
    tensor = dg.ones(1000)
    first, second, alias = again([tensor, tensor, tensor.detach()], path)
    assert first is second and alias is not first
    first[0] = 5
    assert alias[0].item() == 5
    assert path.stat().st_size < 5000


def test_view_of_a_part_is_saved_by_itself(path: Path) -> None:
    tensor = dg.arange(4)
    whole, part = again([tensor, tensor[2:]], path)
    assert (whole.tolist(), part.tolist()) == ([0, 1, 2, 3], [2, 3])


def test_names_that_would_meet_are_kept_apart(path: Path) -> None:
    found = again({"a": {"b": dg.zeros(1)}, "a.b": dg.ones(1), "__metadata__": dg.ones(2)}, path)
    assert (found["a"]["b"].item(), found["a.b"].item()) == (0, 1)


def test_flat_dict_has_its_names_for_every_reader(path: Path) -> None:
    dg.save({"layer.weight": dg.ones(2, 2), "layer.bias": dg.zeros(2)}, path)
    found = safetensors.numpy.load_file(path)
    assert set(found) == {"layer.weight", "layer.bias"}
    assert found["layer.weight"].tolist() == [[1, 1], [1, 1]]


def test_file_of_another_writer_is_a_dict_of_tensors(path: Path) -> None:
    arrays = {"weight": np.ones((2, 2), np.float32), "count": np.array(3)}
    safetensors.numpy.save_file(arrays, path, metadata={"format": "pt"})
    found = dg.load(path)
    assert found["weight"].tolist() == [[1, 1], [1, 1]]
    assert found["count"].dtype == dg.int32 and found["count"].item() == 3


def test_numbers_are_not_narrowed_where_they_would_change(path: Path) -> None:
    safetensors.numpy.save_file({"big": np.array([2**40])}, path)
    with pytest.raises(TypeError, match=r"big has int64 numbers that do not fit int32.*jax_enable"):
        dg.load(path)
    safetensors.numpy.save_file({"wide": np.ones(1)}, path)
    with pytest.raises(TypeError, match="float64 needs 64-bit types"):
        dg.load(path)


@pytest.mark.parametrize("option", ["device", "map_location"])
def test_tensors_go_to_the_device(option: str, path: Path) -> None:
    dg.save([dg.ones(1)], path)
    (found,) = dg.load(path, **{option: "cpu:1"})
    assert str(found.device) == "cpu:1"


def test_device_is_given_once(path: Path) -> None:
    with pytest.raises(TypeError, match="map_location and device, which are one thing"):
        dg.load(path, "cpu", device="cpu")


# --- what goes wrong ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("obj", "match"),
    [
        ({"a": [object()]}, r"can't save a\.0: it is a object, expected tensors"),
        (dg.Generator(), "can't save the object: it is a Generator"),
        (dg.optim.SGD([dg.ones(1)]), r"SGD, expected.*Save what its state_dict\(\) returns"),
    ],
)
def test_what_is_no_data_is_refused_and_the_old_file_stays(
    obj: Any, match: str, path: Path
) -> None:
    dg.save("old", path)
    with pytest.raises(TypeError, match=match):
        dg.save(obj, path)
    assert dg.load(path) == "old"


def test_cycle_is_refused(path: Path) -> None:
    obj: list[Any] = []
    obj.append(obj)
    with pytest.raises(ValueError, match="can't save 0: it holds itself"):
        dg.save(obj, path)


def test_failed_write_leaves_the_old_file_and_nothing_beside_it(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dg.save("old", path)

    def fail(*_: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="no space left"):
        dg.save("new", path)
    assert dg.load(path) == "old"
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize("keep", [0, 4, 100, -1])
def test_file_that_was_cut_off_is_refused(keep: int, path: Path) -> None:
    dg.save({"weight": dg.ones(100)}, path)
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(RuntimeError, match=r"no complete safetensors file.*load an earlier one"):
        dg.load(path)


def test_damaged_structure_is_refused(path: Path) -> None:
    for described in ("{", "{}", '{"format": 1, "content": {"tensor": "x", "number": 0}}'):
        safetensors.numpy.save_file({}, path, metadata={"dyngraph": described})
        with pytest.raises(RuntimeError, match="what dyngraph wrote beside them is damaged"):
            dg.load(path)
    safetensors.numpy.save_file({}, path, metadata={"dyngraph": '{"format": 9, "content": 1}'})
    with pytest.raises(RuntimeError, match="format 9 of a later dyngraph, expected 1"):
        dg.load(path)


@pytest.mark.parametrize(
    ("start", "kind"),
    [(b"PK\x03\x04", "a zip archive"), (b"\x80\x04\x95", "a pickle"), (b"\x93NUMPY", "numpy")],
)
def test_file_that_could_run_code_is_refused(start: bytes, kind: str, path: Path) -> None:
    path.write_bytes(start + bytes(100))
    with pytest.raises(RuntimeError, match=f"{kind}.*expected a safetensors file"):
        dg.load(path)


def test_missing_file_and_what_is_no_path_are_refused(path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"state\.safetensors"):
        dg.load(path)
    with pytest.raises(TypeError, match=r"save\(\) expects a path, got BytesIO"):
        dg.save(1, io.BytesIO())  # type: ignore[arg-type]


def test_without_safetensors_the_error_names_the_extra(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "safetensors", None)
    with pytest.raises(ImportError, match=r"pip install 'dyngraph\[save\]'"):
        dg.save(1, path)
