"""Texts that are written from the registry: the package's `__init__`, and the stub of the methods.

`make generated` writes them after an operator was added; a test fails while one is out of date.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from dyngraph.methods import FAMILIES
from dyngraph.tensor import Tensor

PACKAGE = Path(__file__).parent
SUBMODULES = (
    "amp",
    "autograd",
    "compiled",
    "fft",
    "func",
    "interop",
    "library",
    "linalg",
    "masked",
    "nn",
    "numpy",
    "optim",
    "random",
    "sharding",
    "signal",
    "special",
    "steps",
    "utils",
    "viz",
)
NAMES = {
    "dyngraph.amp.autocast_mode": (
        "autocast",
        "autocast_decrement_nesting",
        "autocast_increment_nesting",
        "clear_autocast_cache",
        "get_autocast_dtype",
        "is_autocast_cache_enabled",
        "is_autocast_enabled",
        "set_autocast_cache_enabled",
        "set_autocast_dtype",
        "set_autocast_enabled",
    ),
    "dyngraph.autograd.anomaly_mode": (
        "is_anomaly_check_nan_enabled",
        "is_anomaly_enabled",
        "set_anomaly_enabled",
    ),
    "dyngraph.comparison": ("compare",),
    "dyngraph.compiled.deferral": ("deferred",),
    "dyngraph.compiled.toggle": ("compiled_autograd",),
    "dyngraph.configuration": ("config",),
    "dyngraph.determinism": (
        "are_deterministic_algorithms_enabled",
        "get_deterministic_debug_mode",
        "is_deterministic_algorithms_warn_only_enabled",
        "set_deterministic_debug_mode",
        "use_deterministic_algorithms",
    ),
    "dyngraph.devices": ("device", "get_default_device", "set_default_device"),
    "dyngraph.func": ("vmap",),
    "dyngraph.interop": ("from_jax", "to_jax"),
    "dyngraph.modes": (
        "enable_grad",
        "inference_mode",
        "is_grad_enabled",
        "is_inference_mode_enabled",
        "no_grad",
        "set_grad_enabled",
    ),
    "dyngraph.precision": ("get_float32_matmul_precision", "set_float32_matmul_precision"),
    "dyngraph.printing": ("set_printoptions",),
    "dyngraph.random": (
        "Generator",
        "default_generator",
        "get_rng_state",
        "initial_seed",
        "manual_seed",
        "seed",
        "set_rng_state",
    ),
    "dyngraph.saving": ("load", "save"),
    "dyngraph.steps": ("compile",),
    "dyngraph.tensor": (
        "Size",
        "Tensor",
        "is_complex",
        "is_floating_point",
        "is_inference",
        "is_tensor",
        "numel",
    ),
    "dyngraph.typed_tensors": (
        "BFloat16Tensor",
        "BoolTensor",
        "ByteTensor",
        "CharTensor",
        "DoubleTensor",
        "FloatTensor",
        "HalfTensor",
        "IntTensor",
        "LongTensor",
        "ShortTensor",
    ),
    "dyngraph.viz.explained": ("explain_grad",),
    "dyngraph.viz.gradients": ("grad_report",),
}
"""What the package exports of files that have no list of it themselves."""


def package_init() -> str:
    """The text of `dyngraph/__init__.py`: every public name, from the file that defines it."""
    exported: dict[str, Iterable[str]] = {"dyngraph.dtypes": _all_of("dyngraph.dtypes"), **NAMES}
    for family in FAMILIES:
        names = _all_of(f"dyngraph.ops.{family}")
        if names:
            exported[f"dyngraph.ops.{family}"] = names
    lines = [
        '"""dyngraph: define-by-run automatic differentiation on JAX, with PyTorch\'s semantics.',
        "",
        "Written by `make generated`; do not edit.",
        '"""',
        "",
        *_import("math", ("e", "inf", "nan", "pi")),
        "",
        "import dyngraph.methods  # noqa: F401  (binds the operators to Tensor)",
        *_import("dyngraph", SUBMODULES),
    ]
    everything = {"e", "inf", "nan", "pi"}
    for module in sorted(exported):
        names = [n for n in exported[module] if n not in everything]
        everything.update(names)
        lines += _import(module, names)
    lines += ["", "__all__ = [", *(f'    "{name}",' for name in sorted(everything)), "]"]
    return "\n".join(lines) + "\n"


def _all_of(module: str) -> list[str]:
    return list(importlib.import_module(module).__all__)


def _import(module: str, names: Iterable[str]) -> list[str]:
    return [f"from {module} import (", *(f"    {n} as {n}," for n in sorted(names)), ")"]


def stub() -> str:
    """The text of `methods.pyi`: a class `Methods` with the signature of all that is bound."""
    lines = [
        '"""Written by `make generated`; do not edit."""',
        "",
        "# pyright: reportIncompatibleMethodOverride=false",
        "",
        "import builtins",
        "from typing import Any",
        "",
        "from dyngraph.tensor import Tensor",
        "",
        "FAMILIES: list[str]",
        "",
        "def python_operator(operator: Any, *, reflected: bool = False) -> Any: ...",
        "",
        "class Methods:",
    ]
    bound = {n: f for n, f in vars(Tensor).items() if _is_operator(f)}
    for name in sorted(bound):
        member = bound[name]
        if isinstance(member, property):
            returned = _returned(member.fget)  # type: ignore[arg-type]
            lines += ["    @property", f"    def {name}(self) -> {returned}: ..."]
            if member.fset is not None:
                lines += [f"    @{name}.setter", f"    def {name}(self, value: Any) -> None: ..."]
            if member.fdel is not None:
                lines += [f"    @{name}.deleter", f"    def {name}(self) -> None: ..."]
        else:
            lines.append(f"    def {name}({_parameters(member)}) -> {_returned(member)}: ...")
    return "\n".join(lines) + "\n"


def _is_operator(member: Any) -> bool:
    function = member.fget if isinstance(member, property) else member
    module = getattr(function, "__module__", "")
    return module.startswith(("dyngraph.ops.", "dyngraph.methods")) or hasattr(function, "spec")


def _parameters(function: Callable[..., Any]) -> str:
    written, starred = ["self"], False
    for p in list(inspect.signature(function).parameters.values())[1:]:
        if p.kind is p.VAR_POSITIONAL or p.kind is p.VAR_KEYWORD:
            starred = starred or p.kind is p.VAR_POSITIONAL
            stars = "*" if p.kind is p.VAR_POSITIONAL else "**"
            written.append(f"{stars}{p.name}: Any")
            continue
        if p.kind is p.KEYWORD_ONLY and not starred:
            written.append("*")
            starred = True
        written.append(f"{p.name}: Any" + ("" if p.default is p.empty else " = ..."))
    return ", ".join(written)


_BUILTIN_RETURNS = ("bool", "int", "float", "str")


def _returned(function: Callable[..., Any]) -> str:
    spec = getattr(function, "spec", None)
    if spec is not None:
        return "Tensor" if spec.outputs is None else "Any"
    named = str(inspect.signature(function).return_annotation)
    if named in _BUILTIN_RETURNS:
        return f"builtins.{named}"  # Tensor has methods of these names
    return named if named in ("Tensor", "None", "Tensor | None") else "Any"


TEXTS: dict[Path, Callable[[], str]] = {
    PACKAGE / "__init__.py": package_init,
    PACKAGE / "methods.pyi": stub,
}


def write() -> None:
    """Writes every text that is not as it should be."""
    for path, text in TEXTS.items():
        wanted = text()
        if path.read_text(encoding="utf-8") != wanted:
            path.write_text(wanted, encoding="utf-8")
            print(f"wrote {path.name}")
