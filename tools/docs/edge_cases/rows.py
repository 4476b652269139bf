"""A row of the table: a situation, the required outcome, and the tests that prove it."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["CONSUMER", "GROUP", "INTEGRATION", "MEMBER", "Case", "named"]

MEMBER: Final = "tests/unit/core/member"
GROUP: Final = "tests/unit/core/group"
CONSUMER: Final = "tests/unit/consumer"
INTEGRATION: Final = "tests/integration"
"""Folders of tests."""


class Case(NamedTuple):
    """A situation that clients got wrong."""

    situation: str
    outcome: str
    """The required outcome."""
    tests: tuple[str, ...] = ()
    """``tests/unit/x.py::test_y``; a test of a class without the class."""
    why_not: str = ""
    """Why a test is impossible."""


def named(folder: str, *tests: str) -> tuple[str, ...]:
    """Tests of a folder, each as ``test_x::what_it_says``: the file and the test, in short."""
    found: list[str] = []
    for each in tests:
        file, name = each.split("::")
        found.append(f"{folder}/test_{file}.py::test_{name}")
    return tuple(found)
