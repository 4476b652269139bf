"""Members that say nothing: sessions that end, revocations that take too long, static members that
do not come back, patterns that are resolved again.

No step sleeps until a timer should have ended: it waits for the state that the timer leads to, on
both sides. Whoever must survive meanwhile has a timer that is far longer, because a group's setting
counts from the heartbeat that follows it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from kip848_client.core.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from tests.differential._conversation import new_state
from tests.differential._group_configs import alter, alter_group
from tests.differential._groups import describe
from tests.differential._heartbeats import (
    acknowledge,
    join,
    join_like_another,
    join_static,
    leave_for_a_while,
    of,
    return_static,
    stranger,
)
from tests.differential._model import MemberModel
from tests.differential._offsets import commit, fetch
from tests.differential._plan import Answered, Kind, Plan, Steps, TooSlowError
from tests.differential._sequence_state import SequenceState
from tests.differential._steps import Ask, AwaitGone, SettleMetadata

__all__ = ["KIND"]

_ROUNDS: Final = 3
_SHORT_MS: Final = 600
_LONG_MS: Final = 60_000
_DOUBT_MS: Final = 0.8 * _SHORT_MS
_SAFE: Final = 0.5
"""Of a timeout: for so long a member must still be there."""


class _Conversation:
    def __init__(self, plan: Plan, state: SequenceState) -> None:
        self._plan = plan
        self._state = state

    def steps(self) -> Steps:
        state = self._state
        rng = state.rng
        yield from self._set_session(_LONG_MS)
        yield from self._ask(join(state))
        for _ in range(_ROUNDS):
            for _ in range(rng.choice([1, 2, 3])):
                chooser = rng.choice([join, join_like_another, join_static])
                yield from self._ask(chooser(state))
            yield from self._converge()
            ending = rng.choice([self._session, self._session, self._revocation, self._absence])
            yield from ending()
            for chooser in (describe, commit, fetch, stranger):
                if rng.random() < 0.5:
                    yield from self._ask(chooser(state))
            yield from self._converge()
        yield from self._ask(describe(state))

    def _session(self) -> Steps:
        """Some members heartbeat once more under a short session timeout, and never again."""
        chosen = self._some_members()
        if not chosen:
            return
        yield from self._set_session(_SHORT_MS)
        armed_ms = self._armed_ms = self._plan.now_ms()
        for member in chosen:
            yield from self._ask(of(self._state, "last-heartbeat", self._state.main, member))
        yield self._gone(chosen, armed_ms)
        self._armed_ms = None
        yield from self._set_session(_LONG_MS)
        self._forget(chosen)

    def _absence(self) -> Steps:
        """A static member goes away for a while, and stays away until its session is over; or
        comes back just in time."""
        state = self._state
        static = [each for each in state.main.members.values() if each.instance_id]
        if not static:
            yield from self._ask(join_static(state))
            return
        member = state.rng.choice(static)
        yield from self._set_session(_SHORT_MS if state.rng.random() < 0.7 else _LONG_MS)
        armed_ms = self._plan.now_ms()
        self._armed_ms = armed_ms if self._session_ms == _SHORT_MS else None
        answer = yield from self._ask(of(state, "last-heartbeat", state.main, member))
        short = getattr(answer, "error_code", 1) == 0
        for each in list(state.main.members.values()):
            each.is_away = each is not member and each.is_away
        yield from self._ask(leave_for_a_while(state))
        if short and self._session_ms == _SHORT_MS:
            yield self._gone([member], armed_ms)
            self._forget([member])
        self._armed_ms = None
        yield from self._set_session(_LONG_MS)
        yield from self._ask(return_static(state))

    def _revocation(self) -> Steps:
        """A member has to give partitions up, and does not say that it did."""
        state = self._state
        owners = [each for each in state.main.members.values() if len(each.assigned) > 1]
        if not owners:
            return
        member = state.rng.choice(owners)
        quick = of(
            state,
            "quick",
            state.main,
            member,
            rebalance_timeout_ms=_SHORT_MS,
            topic_partitions=None,
        )
        yield from self._ask(quick)
        before = member.assigned
        name = state.rng.choice(sorted(state.topics))
        armed_ms = self._armed_ms = self._plan.now_ms()
        ask = of(state, "give-up", state.main, member, subscribed_topic_names=(name,))
        answer = yield from self._ask(ask)
        gives_up = getattr(answer, "error_code", 1) == 0 and before - member.assigned
        if gives_up:
            yield self._gone([member], armed_ms)
            self._forget([member])
        self._armed_ms = None
        if not gives_up:  # what it has to give up later may take its time
            patient = {"rebalance_timeout_ms": _LONG_MS, "topic_partitions": None}
            yield from self._ask(of(state, "patient", state.main, member, **patient))

    # -- bits --------------------------------------------------------------------------------------

    _session_ms = 0
    _armed_ms: float | None = None
    """When a short timer may have begun that nobody has waited for yet."""

    def _set_session(self, value: int) -> Steps:
        if value == self._session_ms:
            return
        self._session_ms = value
        changes = (
            alter("consumer.heartbeat.interval.ms", "100"),
            alter("consumer.session.timeout.ms", str(value)),
        )
        message = alter_group(self._state.main.group_id, *changes)
        yield from self._ask(Ask("set-session", message, 1))
        yield SettleMetadata()

    def _gone(self, members: list[MemberModel], armed_ms: float) -> AwaitGone:
        spent = self._plan.now_ms() - armed_ms
        ids = tuple(each.member_id for each in members)
        here = max(0, int(_SHORT_MS * _SAFE - spent))
        return AwaitGone(self._state.main.group_id, ids, here if spent < _SHORT_MS * 0.3 else 0)

    def _some_members(self) -> list[MemberModel]:
        rng = self._state.rng
        here = [each for each in self._state.main.members.values() if not each.is_away]
        return rng.sample(here, min(len(here), rng.choice([1, 1, 2])))

    def _forget(self, members: list[MemberModel]) -> None:
        for member in members:
            if self._state.main.members.pop(member.member_id, None) is not None:
                self._state.main.gone.append(member.member_id)

    def _converge(self) -> Steps:
        for _ in range(2):
            for member in list(self._state.main.members.values()):
                if not member.is_away:
                    yield from self._ask(acknowledge(self._state, member))

    def _ask(self, ask: Ask | None) -> Answered:
        if ask is None:
            return None
        group_id = getattr(ask.message, "group_id", None)
        heartbeat = isinstance(ask.message, ConsumerGroupHeartbeatRequest)
        if heartbeat and group_id != self._state.main.group_id:
            message = replace(ask.message, group_id=self._state.main.group_id)
            ask = replace(ask, message=message)
        answer: Any = yield ask
        if self._armed_ms is not None and self._plan.now_ms() - self._armed_ms > _DOUBT_MS:
            raise TooSlowError("a timer may have ended on one side, and not yet on the other")
        if heartbeat:
            self._state.main.heard(ask.message, answer)
        return answer


def sequence(plan: Plan) -> Steps:
    """The steps of one seed."""
    return _Conversation(plan, new_state(plan, pattern_share=0)).steps()


KIND: Final = Kind("timers", 5, sequence)
