"""Switching the compiled backward on and off: by block, decorator, setting, environment."""

import os
import subprocess
import sys
import threading

import pytest

import dyngraph as dg
from dyngraph.compiled import is_enabled
from tests.conftest import set_config


def test_mode_is_off_by_default() -> None:
    assert not is_enabled()


def test_mode_is_on_inside_its_block_only() -> None:
    with dg.compiled_autograd():
        assert is_enabled()
    assert not is_enabled()


def test_block_may_switch_it_off_inside() -> None:
    with dg.compiled_autograd():
        with dg.compiled_autograd(False):
            assert not is_enabled()
        assert is_enabled()


def test_mode_ends_with_an_error() -> None:
    with pytest.raises(ZeroDivisionError, match="division"), dg.compiled_autograd():
        _ = 1 / 0
    assert not is_enabled()


def test_decorated_function_has_the_mode() -> None:
    assert dg.compiled_autograd()(is_enabled)()


def test_mode_belongs_to_one_thread() -> None:
    seen = []
    with dg.compiled_autograd():
        thread = threading.Thread(target=lambda: seen.append(is_enabled()))
        thread.start()
        thread.join()
    assert seen == [False]


def test_setting_is_for_all_threads() -> None:
    seen = []
    with set_config(compiled_autograd=True):
        thread = threading.Thread(target=lambda: seen.append(is_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_block_counts_more_than_the_setting() -> None:
    with set_config(compiled_autograd=True), dg.compiled_autograd(False):
        assert not is_enabled()


def test_environment_sets_what_a_process_begins_with() -> None:
    program = (
        "import dyngraph as dg; "
        "print(dg.compiled.is_enabled(), dg.config.compile_after, dg.config.fusion)"
    )
    settings = {"COMPILED_AUTOGRAD": "1", "COMPILE_AFTER": "3", "FUSION": "off"}
    found = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **{f"DYNGRAPH_{k}": v for k, v in settings.items()}},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.split() == ["True", "3", "False"]
