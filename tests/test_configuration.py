"""`dg.config`: what it takes, and what it says of what it does not take."""

import pytest

import dyngraph as dg
from dyngraph.configuration import Config


def test_unknown_setting_is_refused_with_those_that_are() -> None:
    with pytest.raises(AttributeError, match="no setting 'compile_afer': expected one of comp"):
        dg.config.compile_afer = 3


def test_unknown_setting_cannot_be_read() -> None:
    with pytest.raises(AttributeError, match="no setting 'speed'"):
        _ = dg.config.speed


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("compiled_autograd", 1),
        ("compile_after", 0),
        ("compile_after", True),
        ("compile_whole_after", 2.0),
        ("fusion", "sometimes"),
    ],
)
def test_wrong_value_is_refused_and_changes_nothing(name: str, value: object) -> None:
    before = repr(dg.config)
    with pytest.raises(ValueError, match=rf"dg\.config\.{name} = .*: expected"):
        setattr(dg.config, name, value)
    assert repr(dg.config) == before


@pytest.mark.parametrize(
    ("text", "value"), [("1", True), ("ON", True), ("false", False), ("0", False)]
)
def test_words_of_the_environment(monkeypatch: pytest.MonkeyPatch, text: str, value: bool) -> None:
    monkeypatch.setenv("DYNGRAPH_COMPILE_IN_BACKGROUND", text)
    assert Config().compile_in_background is value


def test_wrong_text_in_the_environment_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DYNGRAPH_COMPILE_AFTER", "soon")
    with pytest.raises(ValueError, match="DYNGRAPH_COMPILE_AFTER is 'soon': expected an int"):
        Config()


def test_repr_says_what_each_setting_means() -> None:
    lines = repr(dg.config).splitlines()
    assert len(lines) == 6
    assert all(" = " in line and "  # " in line for line in lines)
