"""The reference page of the member's states is the one that the table gives."""

from __future__ import annotations

from pathlib import Path

from kip848_client.member import TRANSITIONS, MemberState
from tests.support.member_diagram import draw, edges, page

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "member-states.md"


def test_the_committed_page_is_current() -> None:
    expected = page()
    assert PAGE.read_text(encoding="utf-8") == expected, (
        "run: python -m tests.support.member_diagram > docs/reference/member-states.md"
    )


def test_every_move_is_drawn() -> None:
    drawn = draw()
    assert "stateDiagram-v2" in drawn
    for source, trigger, target in edges():
        start = f"  {source.value} --> {target.value}: "
        line = next(line for line in drawn.splitlines() if line.startswith(start))
        assert trigger.__name__ in line


def test_every_move_and_state_is_listed() -> None:
    text = page()
    assert len(edges()) == sum(len(row) for row in TRANSITIONS.values())
    for source, trigger, target in edges():
        assert f"| {source.value} | {trigger.__name__} | {target.value} |" in text
    for state in MemberState:
        assert f"| {state.value} | " in text
