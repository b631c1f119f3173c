"""Saving and loading: tensors in a safetensors file, and what holds them as JSON beside them.

Invariant: loading runs no code from the file, and a file is there as a whole or not at all.

# Note [What is in a file]
Each tensor is an entry of the file, named by the path to it, so a flat dict of tensors is what any
other reader of safetensors expects, and what those write can be loaded. The file's metadata holds
the structure under "dyngraph": JSON, in which what JSON has not (a tuple, a dict, a tensor) is an
object with one key that says what it is.
"""

from __future__ import annotations

import base64
import contextlib
import json
import math
import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from dyngraph import batches, devices, dtypes
from dyngraph.storage import cell_of
from dyngraph.tensor import Tensor, new_tensor
from dyngraph.views import memory_of
from dyngraph.ways_out import read

__all__ = ["load", "save"]

KEY = "dyngraph"
FORMAT = 1


def save(obj: Any, path: str | os.PathLike[str]) -> None:
    """Writes tensors, in dicts, lists and tuples of any depth, to a safetensors file.

    Beside tensors there may be numbers, strings, bytes, None, dtypes, devices, numpy and JAX
    arrays. A tensor that is there twice is written once, and is one tensor again after loading. The
    file is written beside `path` and then takes its place: whatever happens, either the old file is
    there or the new one.

    Raises TypeError for anything else, with the path to it, and leaves what is there as it is.

    >>> import tempfile
    >>> weights = {"weight": dg.ones(2, 2), "bias": dg.zeros(2)}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dg.save({"model": weights, "epoch": 3}, f"{folder}/state.safetensors")
    ...     state = dg.load(f"{folder}/state.safetensors")
    >>> state["epoch"], state["model"]["bias"]
    (3, tensor([0., 0.]))
    """
    write_file = _need_safetensors().numpy.save_file
    target = Path(_check_path("save", path))
    writer = _Writer()
    structure = {"format": FORMAT, "content": writer.describe(obj, ())}
    metadata = {KEY: json.dumps(structure, allow_nan=False)}
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        write_file(writer.arrays, beside, metadata=metadata)
        _flush(beside)
        os.replace(beside, target)
    finally:
        beside.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # some systems can't flush a folder
        _flush(target.parent)


def load(path: str | os.PathLike[str], map_location: Any = None, *, device: Any = None) -> Any:
    """What `save` has written, or the dict of tensors in a safetensors file of another writer.

    Tensors go to `device`, which `map_location` is PyTorch's word for and which may be a
    `jax.sharding.Sharding`; by default to JAX's default device. 64-bit integers become 32-bit ones
    where JAX has x64 off and they fit.

    Raises FileNotFoundError, and RuntimeError for a file that is cut off, damaged, or of another
    kind. TypeError for 64-bit floats while JAX has x64 off.
    """
    safetensors = _need_safetensors()
    if device is not None and map_location is not None:
        raise TypeError("load() got map_location and device, which are one thing. Pass one.")
    place = devices.as_jax_device(map_location if device is None else device)
    path = _check_path("load", path)
    with open(path, "rb") as file:
        _check_kind(path, file.read(16))
    try:
        file = safetensors.safe_open(path, "numpy")
    except safetensors.SafetensorError as error:
        raise RuntimeError(
            f"{path} is no complete safetensors file: {error}. It was cut off or damaged; load "
            "an earlier one."
        ) from error
    with file:
        reader = _Reader(file.get_tensor, place)
        described = (file.metadata() or {}).get(KEY)
        if described is None:
            return {name: reader.tensor(name) for name in file.keys()}  # noqa: SIM118
        try:
            structure = json.loads(described)
            if structure["format"] != FORMAT:
                raise RuntimeError(
                    f"{path} has format {structure['format']} of a later dyngraph, expected "
                    f"{FORMAT}. Load it with that one."
                )
            return reader.build(structure["content"])
        except (KeyError, ValueError, AttributeError, safetensors.SafetensorError) as error:
            raise RuntimeError(
                f"{path} holds tensors, but what dyngraph wrote beside them is damaged: {error!r}. "
                "safetensors.numpy.load_file reads the tensors alone."
            ) from error


def _need_safetensors() -> Any:
    try:
        import safetensors
        import safetensors.numpy
    except ImportError:
        raise ImportError(
            "dyngraph.save and dyngraph.load need safetensors, which is not installed. Run "
            "`pip install 'dyngraph[save]'`."
        ) from None
    return safetensors


def _check_path(where: str, path: Any) -> str:
    if not isinstance(path, str | os.PathLike):
        raise TypeError(
            f"{where}() expects a path, got {type(path).__name__}. Pass a string or a Path: only a "
            "file can be replaced as a whole."
        )
    return os.fspath(path)


def _check_kind(path: str, start: bytes) -> None:
    """Raises RuntimeError for what PyTorch and numpy write by default."""
    kinds = {
        b"PK": "a zip archive, such as torch.save writes",
        b"\x80": "a pickle, such as old versions of torch.save write",
        b"\x93NUMPY": "a numpy file",
    }
    for magic, kind in kinds.items():
        # The size of a header, which safetensors has here, is not so great in any file.
        if start.startswith(magic) and (len(start) < 9 or start[8:9] != b"{"):
            raise RuntimeError(
                f"{path} is {kind}, which load() does not read since loading such a file can run "
                "code: expected a safetensors file. Write it by safetensors.torch.save_file."
            )


def _flush(path: Path) -> None:
    """Waits until a file, or the names in a folder, are on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class _Writer:
    """Turns an object into JSON, and collects the arrays of its tensors by name."""

    def __init__(self) -> None:
        self.arrays: dict[str, np.ndarray] = {}
        self._names: dict[int, str] = {}  # of the memory of tensors
        self._numbers: dict[int, int] = {}  # of tensors, in the order they were met
        self._kept: list[Any] = []  # so that no id is used again
        self._open: set[int] = set()

    def describe(self, obj: Any, path: tuple[str, ...]) -> Any:
        if obj is None or isinstance(obj, bool | str) or type(obj) is int:
            return obj
        if type(obj) is float:
            return obj if math.isfinite(obj) else {"float": repr(obj)}
        if isinstance(obj, Tensor):
            return self._tensor(obj, path)
        if isinstance(obj, Mapping | list | tuple):
            if id(obj) in self._open:
                raise ValueError(
                    f"can't save {_place(path)}: it holds itself. Save a copy without the cycle."
                )
            self._open.add(id(obj))
            try:
                return self._container(obj, path)
            finally:
                self._open.discard(id(obj))
        return self._leaf(obj, path)

    def _container(self, obj: Any, path: tuple[str, ...]) -> Any:
        if isinstance(obj, Mapping):
            items = [(k, self.describe(v, (*path, str(k)))) for k, v in obj.items()]
            return {"dict": [[self.describe(k, (*path, "a key")), v] for k, v in items]}
        parts = [self.describe(part, (*path, str(i))) for i, part in enumerate(obj)]
        return parts if isinstance(obj, list) else {"tuple": parts}

    def _leaf(self, obj: Any, path: tuple[str, ...]) -> Any:
        if isinstance(obj, np.generic):
            return self.describe(obj.item(), path)
        if isinstance(obj, int | float):  # of a subclass
            return self.describe(int(obj) if isinstance(obj, int) else float(obj), path)
        if isinstance(obj, complex):
            return {"complex": [self.describe(obj.real, path), self.describe(obj.imag, path)]}
        if isinstance(obj, bytes):
            return {"bytes": base64.b64encode(obj).decode()}
        if isinstance(obj, dtypes.dtype):
            return {"dtype": obj.name}
        if isinstance(obj, devices.device):
            return {"device": str(obj)}
        if isinstance(obj, np.ndarray | jax.Array):
            kind = "numpy" if isinstance(obj, np.ndarray) else "jax"
            return {kind: self._array(np.asarray(obj), path)}
        remedy = " Save what its state_dict() returns." if hasattr(obj, "state_dict") else ""
        raise TypeError(
            f"can't save {_place(path)}: it is a {type(obj).__name__}, expected tensors, numbers, "
            f"strings, None, dtypes, or dicts, lists and tuples of these.{remedy}"
        )

    def _tensor(self, tensor: Tensor, path: tuple[str, ...]) -> Any:
        batches.refuse_value(tensor._cell.array, "save()")
        root, steps = memory_of(tensor)
        memory = id(tensor if steps else root)
        self._kept.append(root)
        if memory not in self._names:
            self._names[memory] = self._array(read(tensor._cell.array, "save()", np.asarray), path)
        number = self._numbers.setdefault(id(tensor), len(self._numbers))
        self._kept.append(tensor)
        described: dict[str, Any] = {"tensor": self._names[memory], "number": number}
        if tensor.dtype.is_complex:
            described["pairs"] = True
        if tensor.requires_grad:
            described["requires_grad"] = True
        return described

    def _array(self, array: np.ndarray, path: tuple[str, ...]) -> str:
        """Adds an array under a name that is not taken; of complex numbers, pairs of real ones."""
        if array.dtype.kind == "c":
            array = np.stack([np.real(array), np.imag(array)], -1)
        name = ".".join(path) or "tensor"
        while name in self.arrays or name == "__metadata__":
            name += "'"
        self.arrays[name] = np.asarray(array, order="C")
        return name


def _place(path: tuple[str, ...]) -> str:
    return ".".join(path) or "the object"


class _Reader:
    """Builds an object from JSON and the arrays of a file."""

    def __init__(self, get: Callable[[str], np.ndarray], place: Any) -> None:
        self._get = get
        self._place = place
        self._tensors: dict[int, Tensor] = {}
        self._memory: dict[str, Tensor] = {}

    def build(self, node: Any) -> Any:
        if isinstance(node, list):
            return [self.build(part) for part in node]
        if not isinstance(node, dict):
            return node
        if "tensor" in node:
            return self._shared(node)
        ((kind, value),) = node.items()
        return getattr(self, f"_build_{kind}")(value)

    def _build_dict(self, items: list[Any]) -> dict[Any, Any]:
        return {self.build(key): self.build(value) for key, value in items}

    def _build_tuple(self, parts: list[Any]) -> tuple[Any, ...]:
        return tuple([self.build(part) for part in parts])

    def _build_float(self, text: str) -> float:
        return float(text)

    def _build_complex(self, parts: list[Any]) -> complex:
        return complex(*[self.build(part) for part in parts])

    def _build_bytes(self, text: str) -> bytes:
        return base64.b64decode(text)

    def _build_dtype(self, name: str) -> dtypes.dtype:
        return dtypes.of(np.dtype(getattr(jnp, name)))

    def _build_device(self, name: str) -> devices.device:
        return devices.device(name)

    def _build_numpy(self, name: str) -> np.ndarray:
        return self._get(name)

    def _build_jax(self, name: str) -> jax.Array:
        return self._upload(name)

    def _shared(self, node: dict[str, Any]) -> Tensor:
        """A tensor; the one that there is, for a number met before."""
        number, name = node["number"], node["tensor"]
        if number not in self._tensors:
            first = self._memory.get(name)
            if first is None:
                tensor = self._memory[name] = self.tensor(name, pairs=node.get("pairs", False))
            else:
                tensor = first.detach()
            if node.get("requires_grad", False):
                tensor.requires_grad_()
            self._tensors[number] = tensor
        return self._tensors[number]

    def tensor(self, name: str, *, pairs: bool = False) -> Tensor:
        return new_tensor(cell_of(self._upload(name, pairs=pairs)))

    def _upload(self, name: str, *, pairs: bool = False) -> jax.Array:
        array = self._get(name)
        if pairs:
            kind = np.complex64 if array.dtype == np.float32 else np.complex128
            array = array.view(kind).reshape(array.shape[:-1])
        return jax.device_put(_fit(name, array), self._place)


def _fit(name: str, array: np.ndarray) -> np.ndarray:
    """The array in a dtype that JAX has now: 64-bit integers in 32 bits, if nothing is lost."""
    if array.dtype not in (np.int64, np.uint64):
        dtypes.as_dtype(array.dtype)
        return array
    try:
        dtypes.as_dtype(array.dtype)
        return array
    except TypeError:
        narrow = array.astype(np.int32 if array.dtype == np.int64 else np.uint32)
        if not (narrow == array).all():
            raise TypeError(
                f"{name} has {array.dtype} numbers that do not fit {narrow.dtype}, and JAX has "
                "64-bit types switched off. Call jax.config.update('jax_enable_x64', True) first."
            ) from None
        return narrow
