"""Executes notebooks in place, those named or all: `python notebooks/execute.py [FILE ...]`."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import nbformat
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

FOLDER = Path(__file__).parent
SECONDS = 300
"""How long one cell may take."""


class ThisPython(KernelSpecManager):
    """Knows one kernel: the interpreter that is running."""

    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        return KernelSpec(argv=argv, display_name="Python 3", language="python")


def execute(path: Path) -> nbformat.NotebookNode:
    """The notebook with the outputs of all its cells; raises CellExecutionError where one fails."""
    notebook = nbformat.read(path, as_version=4)
    # A folder of its own, and sockets that are files in it, so that notebooks can run side by side.
    with tempfile.TemporaryDirectory(prefix="nb") as folder:
        manager = AsyncKernelManager(
            kernel_spec_manager=ThisPython(),
            transport="ipc",
            connection_file=os.path.join(folder, "kernel.json"),
        )
        paths = [str(FOLDER.parent), os.environ.get("PYTHONPATH", "")]
        env = {
            **os.environ,
            "IPYTHONDIR": folder,
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        }
        client = NotebookClient(
            notebook,
            km=manager,
            timeout=SECONDS,
            record_timing=False,
            shutdown_kernel="immediate",
        )
        client.execute(cleanup_kc=True, cwd=str(FOLDER), env=env)
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return notebook


def main(files: list[str]) -> None:
    """Executes the files, or all."""
    for path in map(Path, files) if files else sorted(FOLDER.glob("*.ipynb")):
        print(f"==> {path.name}", flush=True)
        nbformat.write(execute(path), path)


if __name__ == "__main__":
    main(sys.argv[1:])
