"""The hand-written table against a second engine: ``transitions.Machine`` built from it.

Random walks take every trigger in every order; both engines must agree on the state after each
legal one and on the refusal of each illegal one.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from transitions import Machine, MachineError

from kip848_client.errors import LocalProtocolError
from kip848_client.member import MemberState
from kip848_client.member._states import TRANSITIONS, Trigger, advance
from tests.support.examples import examples

TRIGGERS = sorted(
    {trigger for row in TRANSITIONS.values() for trigger in row}, key=lambda t: t.__name__
)


class Oracle:
    """The model that the second engine moves."""

    state: str


def oracle(start: MemberState) -> Oracle:
    """An engine in ``start``, with the moves of the table and nothing else."""
    model = Oracle()
    Machine(
        model=model,
        states=[state.value for state in MemberState],
        transitions=[
            [trigger.__name__, source.value, target.value]
            for source, row in TRANSITIONS.items()
            for trigger, target in row.items()
        ],
        initial=start.value,
        auto_transitions=False,
    )
    return model


def oracle_takes(model: Oracle, trigger: type[Trigger]) -> bool:
    """Let the second engine take ``trigger``; whether it did."""
    try:
        return bool(getattr(model, trigger.__name__)())
    except MachineError:
        return False


@settings(max_examples=examples(300))
@given(
    start=st.sampled_from(list(MemberState)),
    walk=st.lists(st.sampled_from(TRIGGERS), max_size=60),
)
def test_both_engines_walk_alike(start: MemberState, walk: list[type[Trigger]]) -> None:
    model, state = oracle(start), start
    for trigger in walk:
        taken = oracle_takes(model, trigger)
        try:
            state = advance(state, trigger)
        except LocalProtocolError:
            assert not taken, f"the oracle took {trigger.__name__} in {state}"
        else:
            assert taken, f"the oracle refused {trigger.__name__} in {state}"
        assert model.state == state.value


def test_both_engines_agree_on_every_single_pair() -> None:
    for start in MemberState:
        for trigger in TRIGGERS:
            model = oracle(start)
            assert oracle_takes(model, trigger) == (trigger in TRANSITIONS[start])
