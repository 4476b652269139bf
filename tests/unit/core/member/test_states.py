"""The table of states: every pair that is not in it is refused and changes nothing."""

from __future__ import annotations

import itertools

import pytest

from kip848_client.core.member import (
    TRANSITIONS,
    AssignorsOffered,
    Command,
    CoordinatorFound,
    CoordinatorLookupFailed,
    CoordinatorLost,
    Event,
    FlushOffsets,
    HeartbeatAccepted,
    HeartbeatAnswered,
    HeartbeatFailed,
    HeartbeatLost,
    HeartbeatWanted,
    LeaveMode,
    LeaveRequested,
    LossReason,
    MemberCore,
    MemberSettings,
    MemberState,
    OffsetsFlushed,
    PartitionsReleased,
    PartitionsStarted,
    Polled,
    PollEnded,
    SendHeartbeat,
    Subscribed,
    TimerFired,
    TopicsResolved,
)
from kip848_client.core.member import _events as events_module
from kip848_client.core.member import _states as states
from kip848_client.core.types import MemberId, TopicId
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import LocalProtocolError
from tests.unit.core.member._harness import MEMBER, MemberHarness, exact, in_state

TRIGGERS = sorted(states.Trigger.__subclasses__(), key=lambda trigger: trigger.__name__)
NEVER = 1_000_000
"""A number that no test reaches."""

UNASKED: list[Event] = [
    CoordinatorFound(NEVER),
    CoordinatorLookupFailed(NEVER),
    HeartbeatAnswered(NEVER, HeartbeatAccepted(None, 1, 5_000)),
    HeartbeatLost(NEVER, LossReason.TIMED_OUT),
    HeartbeatFailed(NEVER, LocalProtocolError("x")),
    TopicsResolved(NEVER, {TopicId(bytes(16)): "x"}),
    OffsetsFlushed(NEVER),
    PartitionsReleased(NEVER),
    PartitionsStarted(NEVER),
    CoordinatorFound(0),
    PartitionsStarted(-1),
]
ALWAYS: list[Event] = [
    Polled(),
    Polled(waiting=True),
    PollEnded(),
    TimerFired(),
    CoordinatorLost("moved"),
    HeartbeatWanted(),
    AssignorsOffered(()),
    LeaveRequested(LeaveMode.DEFAULT, NEVER),
]


def fingerprint(core: MemberCore) -> object:
    """Everything that a refused event must leave alone."""
    return (core.snapshot(), core.deadline_ms, core.commit_epoch, core.fetchable, core.closed)


class TestTable:
    def test_names_every_state_and_every_trigger(self) -> None:
        assert set(TRANSITIONS) == set(MemberState)
        used = {trigger for row in TRANSITIONS.values() for trigger in row}
        assert used == set(TRIGGERS)

    @pytest.mark.parametrize(
        ("state", "trigger"),
        [
            pair
            for pair in itertools.product(MemberState, TRIGGERS)
            if pair[1] not in TRANSITIONS[pair[0]]
        ],
        ids=lambda value: value.value if isinstance(value, MemberState) else value.__name__,
    )
    def test_refuses_every_other_pair(
        self, state: MemberState, trigger: type[states.Trigger]
    ) -> None:
        with pytest.raises(LocalProtocolError, match=trigger.__name__) as caught:
            states.advance(state, trigger)
        assert state.value in str(caught.value)

    def test_nothing_leads_out_of_fatal(self) -> None:
        assert TRANSITIONS[MemberState.FATAL] == {}

    def test_every_state_is_reachable_and_all_but_fatal_lead_back_to_unsubscribed(self) -> None:
        reach = {
            state: _closure(state, {s: set(row.values()) for s, row in TRANSITIONS.items()})
            for state in MemberState
        }
        assert reach[MemberState.UNSUBSCRIBED] == set(MemberState)
        for state in set(MemberState) - {MemberState.FATAL}:
            assert MemberState.UNSUBSCRIBED in reach[state]

    @pytest.mark.parametrize("state", MemberState)
    def test_allows_no_move_that_kafka_forbids_but_the_two_to_unsubscribed(
        self, state: MemberState
    ) -> None:
        """The legal moves of Kafka's Java client (class MemberState), by target."""
        s = MemberState
        java = {
            s.UNSUBSCRIBED: {s.JOINING, s.PREPARE_LEAVING, s.FATAL},
            s.JOINING: {s.RECONCILING, s.STABLE, s.FENCED, s.PREPARE_LEAVING, s.FATAL},
            s.RECONCILING: {
                *(s.RECONCILING, s.ACKNOWLEDGING, s.STABLE, s.FENCED),
                *(s.PREPARE_LEAVING, s.FATAL),
            },
            s.ACKNOWLEDGING: {s.RECONCILING, s.STABLE, s.FENCED, s.PREPARE_LEAVING, s.FATAL},
            s.STABLE: {s.RECONCILING, s.FENCED, s.PREPARE_LEAVING, s.FATAL},
            s.FENCED: {s.UNSUBSCRIBED, s.JOINING},
            s.PREPARE_LEAVING: {s.UNSUBSCRIBED, s.FENCED, s.LEAVING, s.FATAL},
            s.LEAVING: {s.UNSUBSCRIBED, s.FENCED, s.STALE, s.FATAL},
            s.STALE: {s.JOINING, s.UNSUBSCRIBED},
            s.FATAL: set[MemberState](),
        }
        assert set(TRANSITIONS[state].values()) <= java[state]


def _closure(start: MemberState, edges: dict[MemberState, set[MemberState]]) -> set[MemberState]:
    seen: set[MemberState] = {start}
    todo = [start]
    while todo:
        new = edges[todo.pop()] - seen
        seen |= new
        todo += new
    return seen


class TestEvents:
    def test_the_lists_above_name_every_event(self) -> None:
        known = {type(e) for e in UNASKED + ALWAYS} | {Subscribed}
        assert {kind.__name__ for kind in known} == (
            set(events_module.__all__) - {"Event", "EVENT_TYPES"}
        )

    @pytest.mark.parametrize("state", MemberState)
    @pytest.mark.parametrize("event", UNASKED, ids=lambda e: f"{type(e).__name__}")
    def test_an_answer_to_nothing_is_refused(self, state: MemberState, event: Event) -> None:
        harness = in_state(state)
        before = fingerprint(harness.core)
        with pytest.raises(LocalProtocolError, match="asked"):
            harness.core.step(harness.now + 1, event)
        assert fingerprint(harness.core) == before

    @pytest.mark.parametrize("state", MemberState)
    @pytest.mark.parametrize("event", ALWAYS, ids=lambda e: f"{type(e).__name__}")
    def test_what_may_come_at_any_time_is_taken(self, state: MemberState, event: Event) -> None:
        harness = in_state(state)
        harness.feed(event)
        harness.advance(1)

    @pytest.mark.parametrize("state", MemberState)
    def test_subscribing_is_refused_in_fatal_alone(self, state: MemberState) -> None:
        harness = in_state(state)
        before = fingerprint(harness.core)
        if state is MemberState.FATAL:
            with pytest.raises(LocalProtocolError, match="FATAL"):
                harness.subscribe("u")
            assert fingerprint(harness.core) == before
        else:
            harness.subscribe("u")

    @pytest.mark.parametrize("state", MemberState)
    def test_after_a_final_leave_only_facts_are_taken(self, state: MemberState) -> None:
        harness = in_state(state)
        harness.leave(within=0, final=True)
        assert harness.core.closed
        before = fingerprint(harness.core)
        for event in (Subscribed(frozenset({"t"})), LeaveRequested(LeaveMode.DEFAULT, NEVER)):
            with pytest.raises(LocalProtocolError, match="clos"):
                harness.core.step(harness.now, event)
            assert fingerprint(harness.core) == before
        harness.feed(Polled())
        assert harness.core.deadline_ms is None
        assert harness.last == ()

    def test_subscribing_while_closing_is_refused(self) -> None:
        harness = in_state(MemberState.STABLE)
        harness.leave(final=True)
        with pytest.raises(LocalProtocolError, match="closing"):
            harness.subscribe("u")

    @pytest.mark.parametrize("event", [Event(), object()], ids=["Event", "object"])
    def test_what_is_no_event_is_refused(self, event: Event) -> None:
        harness = in_state(MemberState.STABLE)
        before = fingerprint(harness.core)
        with pytest.raises(LocalProtocolError, match="not an event"):
            harness.core.step(harness.now, event)
        assert fingerprint(harness.core) == before

    @pytest.mark.parametrize("state", MemberState)
    def test_stale_answers_are_counted_and_ignored(self, state: MemberState) -> None:
        """Whatever was answered once may be answered again."""
        harness = in_state(state)
        answers = [_answer(command) for command in harness.history]
        used = [a for a in answers if a is not None]
        harness.leave(within=0, final=True)
        before = harness.core.snapshot()
        for event in used:
            assert harness.core.step(harness.now, event) == ()
        after = harness.core.snapshot()
        assert after.stale_answers == before.stale_answers + len(used)
        assert after.state is before.state

    def test_a_clock_that_goes_back_is_held(self) -> None:
        harness = in_state(MemberState.STABLE)
        deadline = harness.core.deadline_ms
        harness.core.step(0, TimerFired())
        assert harness.core.deadline_ms == deadline

    def test_a_member_needs_an_id(self) -> None:
        """KIP-1082: the client makes the id; an empty one is refused by the broker from v1 on."""
        with pytest.raises(LocalProtocolError, match="KIP-1082"):
            MemberCore(MemberSettings(), MemberId(""), exact)


def _answer(command: Command) -> Event | None:
    match command:
        case SendHeartbeat():
            return HeartbeatLost(command.attempt, LossReason.TIMED_OUT)
        case FlushOffsets():
            return OffsetsFlushed(command.plan)
        case _:
            plan = getattr(command, "plan", None)
            return None if plan is None else PartitionsStarted(plan)


class TestStateMeanings:
    @pytest.mark.parametrize(
        "state",
        [MemberState.UNSUBSCRIBED, MemberState.FENCED, MemberState.STALE, MemberState.FATAL],
    )
    def test_states_outside_send_nothing(self, state: MemberState) -> None:
        """KAFKA-16251: no heartbeat while FENCED until the lost callback is done."""
        harness = in_state(state)
        harness.advance(600_000)
        assert harness.heartbeats == []

    @pytest.mark.parametrize("state", MemberState)
    def test_committers_see_an_epoch_only_in_the_group(self, state: MemberState) -> None:
        harness = in_state(state)
        inside = {
            MemberState.RECONCILING,
            MemberState.ACKNOWLEDGING,
            MemberState.STABLE,
            MemberState.PREPARE_LEAVING,
        }
        assert (harness.core.commit_epoch is not None) == (state in inside)

    def test_the_id_never_changes(self) -> None:
        harness = MemberHarness().stable()
        harness.next_heartbeat()
        harness.refuse(ErrorCode.UNKNOWN_MEMBER_ID)
        harness.released()
        assert harness.core.member_id == MEMBER
        assert harness.intent.member_id == MEMBER
