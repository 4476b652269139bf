"""The hand-written tables against a second engine: ``transitions.Machine`` built from them.

Random walks take every trigger in every order; both engines must agree on the state after each
legal one and on the refusal of each illegal one.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transitions import Machine, MachineError

from kip848_client.errors import LocalProtocolError
from tests.support.examples import examples
from tools.docs.states import TABLES, Table, edges


class Oracle:
    """The model that the second engine moves."""

    state: str


def oracle(table: Table, start: Enum) -> Oracle:
    """An engine in ``start``, with the moves of the table and nothing else."""
    model = Oracle()
    Machine(
        model=model,
        states=[state.value for state in table.states],
        transitions=[
            [trigger.__name__, source.value, target.value]
            for source, trigger, target in edges(table)
        ],
        initial=start.value,
        auto_transitions=False,
    )
    return model


def oracle_takes(model: Oracle, trigger: type[Any]) -> bool:
    """Let the second engine take ``trigger``; whether it did."""
    try:
        return bool(getattr(model, trigger.__name__)())
    except MachineError:
        return False


@pytest.mark.parametrize("name", TABLES)
@settings(max_examples=examples(300))
@given(data=st.data())
def test_both_engines_walk_alike(name: str, data: st.DataObject) -> None:
    table = TABLES[name]
    state = data.draw(st.sampled_from(list(table.states)))
    walk = data.draw(st.lists(st.sampled_from(table.triggers), max_size=60))
    model = oracle(table, state)
    for trigger in walk:
        taken = oracle_takes(model, trigger)
        try:
            state = table.advance(state, trigger)
        except LocalProtocolError:
            assert not taken, f"the oracle took {trigger.__name__} in {state}"
        else:
            assert taken, f"the oracle refused {trigger.__name__} in {state}"
        assert model.state == state.value


@pytest.mark.parametrize("name", TABLES)
def test_both_engines_agree_on_every_single_pair(name: str) -> None:
    table = TABLES[name]
    for start in table.states:
        for trigger in table.triggers:
            model = oracle(table, start)
            assert oracle_takes(model, trigger) == (trigger in table.transitions[start])


@pytest.mark.parametrize("name", TABLES)
def test_every_state_can_be_reached_and_left(name: str) -> None:
    """All but the one that only the user can end."""
    table = TABLES[name]
    reached, before = {table.initial}, set[Enum]()
    while reached != before:
        before = set(reached)
        reached |= {target for source, _, target in edges(table) if source in before}
    assert reached == set(table.states)
    assert [state.value for state in table.states if not table.transitions[state]] == ["FATAL"]
