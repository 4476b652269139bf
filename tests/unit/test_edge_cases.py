"""``docs/reference/edge-cases.md`` names tests that are there."""

from __future__ import annotations

import pytest

from tools.docs.edge_cases import TABLE, names_in
from tools.docs.edge_cases.rows import Case

CASES = [case for cases in TABLE.values() for case in cases]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.situation)
def test_each_row_has_its_tests_or_says_why_not(case: Case) -> None:
    assert bool(case.tests) is not bool(case.why_not)
    for test in case.tests:
        file, name = test.split("::")
        assert name in names_in(file)
