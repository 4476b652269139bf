"""Groups that change their type while they work: classic members and members of KIP-848 in one
group, upgrade and downgrade, members that switch and static members that come back in the other
protocol; under every migration policy, each on a broker of its own.
"""

from __future__ import annotations

from typing import Any, Final

from kip848_client.core.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.differential._classic_requests import OUTSIDER_CHANNEL
from tests.differential._conversation import new_state
from tests.differential._groups import describe
from tests.differential._heartbeats import (
    Chooser,
    acknowledge,
    full_request,
    heartbeat,
    join,
    join_fields,
    join_like_another,
    join_static,
    leave,
    leave_for_a_while,
    old_epoch,
    rejoin,
    resubscribe,
    return_static,
    steady,
)
from tests.differential._plan import Kind, Plan, Steps
from tests.differential._sequence_state import SequenceState
from tests.differential._steps import Ask, Send
from tests.differential.kinds.classic import ClassicConversation

__all__ = ["KINDS"]


def switch(state: SequenceState, member_ids: list[str]) -> Ask | None:
    """A classic member goes on in the new protocol, under the id that it has."""
    if not member_ids:
        return None
    member_id = state.rng.choice(member_ids)
    return heartbeat(state, "switch", state.main, member_id, **join_fields(state))


_NEW: Final[tuple[tuple[float, Chooser], ...]] = (
    (4, join),
    (3, join_like_another),
    (2, join_static),
    (1.5, return_static),
    (1, rejoin),
    (6, steady),
    (8, acknowledge),
    (1, full_request),
    (1, old_epoch),
    (1.5, resubscribe),
    (3, leave),
    (1, leave_for_a_while),
    (6, describe),
)


class _Conversation(ClassicConversation):
    """As of a classic group, with members of the other kind among them."""

    def __init__(self, plan: Plan, state: SequenceState) -> None:
        super().__init__(plan, state, timed_share=0)
        self._weights["new"] = state.rng.choice([4.0, 10.0, 16.0])
        self._requests.owns_what_it_got = True

    def _act(self, choice: str) -> Steps:
        if choice == "new":
            yield from self._new()
        else:
            yield from super()._act(choice)

    def _converge(self) -> Steps:
        yield from super()._converge()
        for member in list(self._state.main.members.values()):
            if not member.is_away and member.member_id in self._state.main.members:
                yield from self._say(acknowledge(self._state, member))

    def _new(self) -> Steps:
        state = self._state
        (chooser,) = state.rng.choices([each for _, each in _NEW], [each for each, _ in _NEW])
        ask = chooser(state)
        classic = [each.member_id for each in self._group.clients if each.member_id]
        if state.rng.random() < 0.08:
            ask = switch(state, classic)
        if ask is not None:
            yield from self._say(ask)

    def _say(self, ask: Ask | None) -> Steps:
        if ask is None:
            return
        self._sent += 1
        answers = yield Send(ask.action, ask.message, ask.version, OUTSIDER_CHANNEL)
        answer: Any = answers.get(OUTSIDER_CHANNEL)
        if answer is not None and isinstance(ask.message, ConsumerGroupHeartbeatRequest):
            group = self._state.group_named(ask.message.group_id)
            if group is not None:
                group.heard(ask.message, answer)
        yield from self._answers(answers)


def sequence(plan: Plan) -> Steps:
    """The steps of one seed."""
    return _Conversation(plan, new_state(plan, pattern_share=0)).steps()


def _kind(name: str, share: int, policy: str) -> Kind:
    return Kind(name, share, sequence, configs={"group.consumer.migration.policy": policy})


KINDS: Final = (
    _kind("migration", 9, "bidirectional"),
    _kind("migration-upgrade", 1, "upgrade"),
    _kind("migration-downgrade", 1, "downgrade"),
    _kind("migration-disabled", 1, "disabled"),
)
"""One for each policy."""
