"""docs/compiled.md: its programs run, one after the other, and what they assert holds."""

from tests.pages import run_page


def test_programs_of_the_page_run() -> None:
    run_page("compiled.md", programs=4)
