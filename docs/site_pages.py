"""What the site has beside the pages of docs/: the README, the notebooks, pages of the API.

A hook of mkdocs; see mkdocs.yml. The pages are made in memory, nothing is written.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from dyngraph import generated  # noqa: E402

NOTEBOOKS = ROOT / "notebooks"
MODULES = """
    autograd autograd.graph autograd.function autograd.forward_ad autograd.functional
    comparison compiled func interop library nn nn.init nn.utils optim random sharding utils
    utils.checkpoint utils.data viz
""".split()
"""The modules with a page, as far as they are there; operators are on the page of operators."""


@functools.cache
def api_pages() -> dict[str, str]:
    """The text of each page of the API, by its place."""
    pages = {f"api/{module}.md": _page_of(module) for module in MODULES if _is_there(module)}
    return {"api/dyngraph.md": _root_page(), **pages}


def _is_there(module: str) -> bool:
    path = ROOT.joinpath("dyngraph", *module.split("."))
    if not (path / "__init__.py").is_file() and not path.with_suffix(".py").is_file():
        return False
    return hasattr(importlib.import_module(f"dyngraph.{module}"), "__all__")


def _page_of(module: str) -> str:
    """A module's docstring, and its public names."""
    space = importlib.import_module(f"dyngraph.{module}")
    names = [name for name in space.__all__ if not inspect.ismodule(getattr(space, name))]
    folder = ROOT.joinpath("dyngraph", *module.split("."))
    # of a function and a file of one name, the pages' tool would take the file
    apart = [name for name in names if (folder / f"{name}.py").is_file()]
    text = f"# dyngraph.{module}\n\n"
    text += _directive(space.__name__, [name for name in names if name not in apart])
    for name in apart:
        text += (
            f"::: {space.__name__}.{name}.{name}\n    options:\n      show_root_heading: true\n\n"
        )
    return text


def _directive(module: str, names: Iterable[str]) -> str:
    members = "".join(f"        - {name}\n" for name in names)
    return f"::: {module}\n    options:\n      members:\n{members}\n"


def _root_page() -> str:
    """What `dyngraph` itself has beside operators, and Tensor's members that are no operators."""
    parts = [_directive(module, names) for module, names in generated.NAMES.items()]
    return "# dyngraph\n\n" + "".join(parts)


def notebooks() -> list[Path]:
    """The notebooks, in their order."""
    return sorted(NOTEBOOKS.glob("*.ipynb"))


def readme() -> str:
    """The README as the first page."""
    return links(ROOT.joinpath("README.md").read_text(encoding="utf-8"))


def links(text: str) -> str:
    """Links from the root of the repository as links from docs/; those to code become text."""
    text = re.sub(r"\]\(docs/([^)]+)\)", r"](\1)", text)
    text = re.sub(r"\]\((notebooks/[^)]+\.ipynb)\)", r"](\1)", text)
    return re.sub(r"\[([^\]]+)\]\((?!https?:|#|notebooks/)([^):]+(?<!\.md))\)", r"\1", text)


def on_config(config: Any) -> Any:
    """Adds notebooks and API to the navigation."""
    if notebooks():
        shown = [{_title(path): f"notebooks/{path.name}"} for path in notebooks()]
        config.nav.insert(1, {"Notebooks": shown})
    config.nav.append({"API": [{page[4:-3]: page} for page in api_pages()]})
    return config


def _title(path: Path) -> str:
    return path.stem.replace("_", " ")


@event_priority(100)
def on_files(files: Files, config: Any) -> Files:
    """Adds what is made; before other plugins look for notebooks."""
    files.append(File.generated(config, "index.md", content=readme()))
    for page, text in api_pages().items():
        files.append(File.generated(config, page, content=text))
    for path in notebooks():
        place = f"notebooks/{path.name}"
        files.append(File(place, str(ROOT), config.site_dir, config.use_directory_urls))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Links between pages of docs/ and files of the repository."""
    if page.file.src_uri.startswith(("api/", "notebooks/")):
        return markdown
    return re.sub(r"\[([^\]]+)\]\(\.\./[^)]+\)", r"\1", markdown)


def on_post_build(config: Any) -> None:
    """Leaves no folder of notebooks' sources behind."""
    shutil.rmtree(Path(config.site_dir) / "notebooks" / ".ipynb_checkpoints", ignore_errors=True)
