"""Writes docs/names.md: `python docs/names.py`. Where what PyTorch's autograd calls so is here."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS.parent))
PAGE = DOCS / "names.md"


class Concept(NamedTuple):
    """What it is called in PyTorch (its C++ names too), where it is here, and what it is."""

    name: str
    where: str
    what: str


HEAD = """\
# PyTorch's name, ours, where in the code

Written by `python docs/names.py`; do not edit. Paths are below `dyngraph/`; a symbol follows `::`.
Where the two differ, the name in the first column is PyTorch's, and the symbol is ours.
"""


def concepts() -> dict[str, list[Concept]]:
    """The concepts by section."""
    sections: dict[str, list[Concept]] = {}
    for line in (DOCS / "concepts.txt").read_text(encoding="utf-8").splitlines()[1:]:
        if line.startswith("## "):
            sections[line[3:]] = []
        elif line:
            sections[next(reversed(sections))].append(Concept(*line.split(" | ")))
    return sections


MODULES = """
    autograd autograd.graph autograd.function autograd.forward_ad autograd.functional
    utils.checkpoint func library random compiled interop comparison viz optim optim.lr_scheduler
    nn nn.init nn.utils utils.data
""".split()
"""Modules whose names are listed one by one, with their files."""
OPERATORS = "dyngraph nn.functional linalg fft special masked signal.windows".split()
"""Modules of operators, which are listed by the file that they are in."""

FROM_JAX = "special.py", "nn/functional.py"
"""What these hold is JAX's and not PyTorch's; which names, depends on the installed jax."""


def names_of(module: str) -> Iterator[tuple[str, str]]:
    """Each public name of a module with the file that defines it, below `dyngraph/`."""
    dotted = "dyngraph" if module == "dyngraph" else f"dyngraph.{module}"
    space = importlib.import_module(dotted)
    for name in space.__all__:
        value: Any = getattr(space, name)
        home = value.__name__ if inspect.ismodule(value) else getattr(value, "__module__", None)
        if isinstance(home, str) and home.startswith("dyngraph"):
            path = home.split(".")[1:]
            root = DOCS.parent / "dyngraph"
            file = "/".join(path) + ("/__init__.py" if root.joinpath(*path).is_dir() else ".py")
            yield name, file.removeprefix("/")


def page() -> str:
    """The text of the page."""
    lines = [HEAD]
    for title, found in concepts().items():
        lines += [f"## {title}", "", "| PyTorch's | where | what |", "| --- | --- | --- |"]
        for name, where, what in found:
            shown = ", ".join(_code(part) for part in name.split(", "))
            lines.append(f"| {shown} | `{where}` | {what} |")
        lines.append("")
    lines += ["## Public names, module by module", ""]
    lines.append("`torch.X` is `dyngraph.X`; `torch.utils.checkpoint.X` is `dyngraph.utils...`.\n")
    for module in MODULES:
        lines += [f"### `{module}`", "", "| name | file |", "| --- | --- |"]
        lines += [f"| `{name}` | `{file}` |" for name, file in names_of(module)]
        lines.append("")
    lines += ["## Operators, file by file", ""]
    for module in OPERATORS:
        files = defaultdict(list)
        for name, file in names_of(module):
            if file not in FROM_JAX:
                files[file].append(name)
        prefix = "torch" if module == "dyngraph" else f"torch.{module}"
        lines += [f"### `{prefix}`", "", "| file | names |", "| --- | --- |"]
        lines += [f"| `{f}` | {', '.join(f'`{n}`' for n in files[f])} |" for f in sorted(files)]
        lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def _code(name: str) -> str:
    """A name as code; a phrase as it is."""
    return name if " " in name or (name.isalpha() and name.islower()) else f"`{name}`"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE}")
