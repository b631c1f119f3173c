"""`python -m dyngraph`: its commands, and what the doctor says of what is wrong."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from dyngraph import doctor

command_line: Any = importlib.import_module("dyngraph.__main__")


def state_of(findings: list[doctor.Finding], what: str) -> str:
    (state,) = [f.state for f in findings if f.what == what]
    return state


def test_doctor_finds_nothing_broken_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "gives the eager gradient" in out
    assert out.splitlines()[-1].startswith("all is well")


def test_doctor_writes_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["doctor", "--json"]) == 0
    sections = {f["section"] for f in json.loads(capsys.readouterr().out)}
    assert {"versions", "devices", "settings", "caches", "kernels"} <= sections


def test_doctor_refuses_what_it_does_not_know(capsys: pytest.CaptureFixture[str]) -> None:
    assert command_line.main(["doctor", "--all"]) == 2
    assert "'--all' is unknown" in capsys.readouterr().err


def test_kernel_that_fails_is_broken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(device: Any) -> str:
        raise RuntimeError("no memory\nmore")

    monkeypatch.setattr(doctor, "_compiled", fails)
    assert command_line.main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "RuntimeError: no memory\n" in out
    assert out.splitlines()[-1] == "broken (1): kernels: compiled backward"


def test_old_jax_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_version", lambda name: "0.9.1")
    findings = list(doctor._versions())
    assert state_of(findings, "jax") == doctor.BROKEN
    assert "0.9.1, expected 0.10 or newer" in [f.found for f in findings]


def test_jax_and_jaxlib_of_two_versions_are_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"jax": "0.12.0", "jaxlib": "0.10.2", "numpy": "2.0", "dyngraph": "1"}
    monkeypatch.setattr(doctor, "_version", versions.get)
    assert state_of(list(doctor._versions()), "pair") == doctor.BROKEN


def test_unknown_switch_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DYNGRAPH_COMPILE_AFTR", "1")
    monkeypatch.setenv("DYNGRAPH_COMPILE_AFTER", "1")
    findings = list(doctor._switches())
    assert state_of(findings, "DYNGRAPH_COMPILE_AFTR") == doctor.NOTE
    assert state_of(findings, "DYNGRAPH_COMPILE_AFTER") == doctor.OK


def test_cache_that_is_not_set_is_told_how(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "CONFIG", type("", (), {"jax_compilation_cache_dir": None}))
    (finding,) = doctor._caches()
    assert "JAX_COMPILATION_CACHE_DIR=folder" in finding.found


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        command_line.main(["--version"])
    assert capsys.readouterr().out.startswith("dyngraph")


def test_help_lists_the_commands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        command_line.main(["--help"])
    out = capsys.readouterr().out
    assert all(command in out for command in ("doctor", "demo", "bench"))


def test_command_that_is_not_there_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        command_line.main(["dance"])
    assert "invalid choice: 'dance'" in capsys.readouterr().err


def test_options_go_on_to_the_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []
    stand_in = type("", (), {"main": staticmethod(seen.append)})
    monkeypatch.setitem(sys.modules, "dyngraph.demo.__main__", stand_in)
    assert command_line.main(["demo", "--steps", "3"]) == 0
    assert seen == [["--steps", "3"]]


def test_options_go_on_to_the_benchmarks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "bench"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "__main__.py").write_text("import sys\nprint(sys.argv[1:])\n")
    monkeypatch.setattr(command_line, "ROOT", tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.setattr(sys, "argv", sys.argv)
    for name in ("bench", "bench.__main__"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    assert command_line.main(["bench", "--rounds", "1"]) == 0
    assert capsys.readouterr().out == "['--rounds', '1']\n"
    for name in ("bench", "bench.__main__"):
        sys.modules.pop(name, None)


def test_benchmarks_that_are_not_there_are_told_of(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command_line, "ROOT", tmp_path)
    monkeypatch.chdir(tmp_path)
    assert command_line.main(["bench"]) == 1
    assert "source distribution. Run `make bench`" in capsys.readouterr().err
