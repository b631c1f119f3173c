"""The programs of docs/amp.md run."""

from tests.pages import run_page


def test_programs_of_the_page_run() -> None:
    run_page("amp.md", programs=3)
