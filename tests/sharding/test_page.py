"""docs/sharding.md: its programs run, one after the other, and what they assert holds."""

from tests.pages import run_page


def test_programs_of_the_page_run() -> None:
    run_page("sharding.md", programs=5)
