"""The command line: `python -m dyngraph {doctor,demo,bench} ...`."""

from __future__ import annotations

import argparse
import importlib
import importlib.metadata
import runpy
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent


def main(arguments: list[str] | None = None) -> int:
    """Runs a command: its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m dyngraph", description="Define-by-run automatic differentiation on JAX."
    )
    parser.add_argument("--version", action="version", version=_version())
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, (_, text) in COMMANDS.items():
        commands.add_parser(name, help=text, add_help=False)
    given = sys.argv[1:] if arguments is None else arguments
    options, rest = parser.parse_known_args(given[:1])
    return COMMANDS[options.command][0](rest + given[1:])


def _version() -> str:
    try:
        return f"dyngraph {importlib.metadata.version('dyngraph')}"
    except importlib.metadata.PackageNotFoundError:
        return "dyngraph, not installed"


def doctor(arguments: list[str]) -> int:
    """Looks at what is installed and runs a kernel on each device."""
    from dyngraph import doctor

    return doctor.main(arguments)


def demo(arguments: list[str]) -> int:
    """The demonstration."""
    importlib.import_module("dyngraph.demo.__main__").main(arguments)
    return 0


def bench(arguments: list[str]) -> int:
    """The benchmarks, which are beside the package in a checkout and not in a wheel."""
    roots = [root for root in (ROOT, Path.cwd()) if (root / "bench" / "__main__.py").is_file()]
    if not roots:
        print(
            "the benchmarks are not part of the installed package: they are in the folder bench/ "
            "of the repository and of the source distribution. Run `make bench`, or "
            "`python -m dyngraph bench`, in a copy of it.",
            file=sys.stderr,
        )
        return 1
    sys.path.insert(0, str(roots[0]))
    sys.argv = ["python -m bench", *arguments]
    runpy.run_module("bench", run_name="__main__")
    return 0


COMMANDS = {
    "doctor": (doctor, "what is installed, which devices there are, whether a kernel runs on each"),
    "demo": (demo, "train a small language model; its options follow"),
    "bench": (bench, "print the table of benchmarks; its options follow"),
}


if __name__ == "__main__":
    sys.exit(main())
