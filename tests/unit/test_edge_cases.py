"""``docs/reference/edge-cases.md`` names tests that are there."""

from __future__ import annotations

import pytest

from tests.edge_cases import TABLE, names_in, page
from tests.edge_cases.rows import Case
from tests.tidy.source_tree import ROOT

PAGE = ROOT / "docs" / "reference" / "edge-cases.md"
CASES = [case for cases in TABLE.values() for case in cases]


def test_the_page_is_the_table() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), (
        "run: python -m tests.edge_cases > docs/reference/edge-cases.md"
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.situation)
def test_each_row_has_its_tests_or_says_why_not(case: Case) -> None:
    assert bool(case.tests) is not bool(case.why_not)
    for test in case.tests:
        file, name = test.split("::")
        assert name in names_in(file)
