"""The reference pages of states are the ones that the tables give."""

from __future__ import annotations

import pytest

from tools.docs.states import TABLES, draw, edges, page


@pytest.mark.parametrize("name", TABLES)
def test_every_move_is_drawn(name: str) -> None:
    drawn = draw(TABLES[name])
    assert "stateDiagram-v2" in drawn
    for source, trigger, target in edges(TABLES[name]):
        start = f"  {source.value} --> {target.value}: "
        line = next(line for line in drawn.splitlines() if line.startswith(start))
        assert trigger.__name__ in line


@pytest.mark.parametrize("name", TABLES)
def test_every_move_and_state_is_listed(name: str) -> None:
    table = TABLES[name]
    text = page(table)
    assert len(edges(table)) == sum(len(row) for row in table.transitions.values())
    for source, trigger, target in edges(table):
        assert f"| {source.value} | {trigger.__name__} | {target.value} |" in text
        assert trigger.__doc__
    for state in table.states:
        assert f"| {state.value} | " in text
