"""Situations in which members of a group were seen to go wrong, as a page:
``python -m tools.docs``."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Final

from tests.tidy.source_tree import ROOT
from tools.docs.edge_cases.of_assignments import RECONCILING
from tools.docs.edge_cases.of_endings import LEAVING, OFFSETS
from tools.docs.edge_cases.of_members import HEARTBEATS, JOINING
from tools.docs.edge_cases.rows import Case

__all__ = ["TABLE", "names_in", "page"]

TABLE: Final[Mapping[str, tuple[Case, ...]]] = {
    "Joining and identity": JOINING,
    "Heartbeats": HEARTBEATS,
    "From one assignment to the next": RECONCILING,
    "Leaving": LEAVING,
    "Committed offsets": OFFSETS,
}

_HEAD: Final = """\
# Where members of a group go wrong, and the tests that would see it

Clients of this protocol, and their brokers, have met all of these. Each row says what must come of
it here, and which tests prove that. Of fetching: [known-bugs.md](known-bugs.md).

This page is printed by `python -m tools.docs`; a test compares them, and looks for the tests.
"""


def page() -> str:
    """The text of ``docs/reference/edge-cases.md``."""
    return "".join((_HEAD, *_sections()))


@cache
def names_in(file: str) -> Mapping[str, str]:
    """The tests of a file by their names, as pytest names them (``TestX::test_y``)."""
    found: dict[str, str] = {}
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    for node in tree.body:
        inside = node.body if isinstance(node, ast.ClassDef) else [node]
        for each in inside:
            if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef):
                of = f"{node.name}::" if isinstance(node, ast.ClassDef) else ""
                found[each.name] = f"{of}{each.name}"
    return found


def _sections() -> Iterator[str]:
    number = 0
    for title, cases in TABLE.items():
        yield f"\n## {title}\n\n| | what happens | what must come of it | tests |\n"
        yield "|---|---|---|---|\n"
        for case in cases:
            number += 1
            proof = "; ".join(map(_shown, case.tests)) or f"none: {case.why_not}"
            yield f"| {number} | {case.situation} | {case.outcome} | {proof} |\n"


def _shown(test: str) -> str:
    file, name = test.split("::")
    return f"[{names_in(file)[name]}](../../{file})"
