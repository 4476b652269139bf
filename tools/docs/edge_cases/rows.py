"""What a row of the table is: a situation, what must come of it, and the tests that prove it."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["CONSUMER", "GROUP", "INTEGRATION", "MEMBER", "Case", "named"]

MEMBER: Final = "tests/unit/member"
GROUP: Final = "tests/unit/group"
CONSUMER: Final = "tests/unit/consumer"
INTEGRATION: Final = "tests/integration"
"""Where tests are."""


class Case(NamedTuple):
    """A situation in which clients were seen to go wrong."""

    situation: str
    outcome: str
    """What must come of it."""
    tests: tuple[str, ...] = ()
    """``tests/unit/x.py::test_y``; a test of a class without the class."""
    why_not: str = ""
    """Why there can be no test."""


def named(folder: str, *tests: str) -> tuple[str, ...]:
    """Tests of a folder, each as ``test_x::what_it_says``: the file and the test, in short."""
    found: list[str] = []
    for each in tests:
        file, name = each.split("::")
        found.append(f"{folder}/test_{file}.py::test_{name}")
    return tuple(found)
