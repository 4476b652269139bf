"""The simulation finds bugs: each of these is planted, and found within a few seeds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

import pytest

from kip848_client.core.assignors import SubscriptionType
from kip848_client.core.fetch._core import FetchCore
from kip848_client.core.fetch._partition import HELD, Partition
from kip848_client.core.group import AssignPartitions, _listener_calls
from kip848_client.core.member import LossReason, _core, _error_rules
from kip848_client.core.member._callbacks import CallbackWork
from kip848_client.core.member._error_rules import Reaction
from kip848_client.core.member._extra_heartbeats import ExtraHeartbeats
from kip848_client.core.member._model import HeartbeatRefused, group_by_topic
from kip848_client.core.offsets import OffsetTracker
from mock_coordinator.core.groups.assignment import current_assignment, target_assignment
from mock_coordinator.core.groups.service import coordinator as groups
from mock_coordinator.core.groups.state import consumer_group
from mock_coordinator.core.groups.state.timers import Timer, TimerKind, Timers
from mock_coordinator.sim.client_connection import ClientConnection
from mock_coordinator.sim.group_world import GroupWorld
from tests.simulation.planted import heads

pytestmark = pytest.mark.timeout(240)


def found(seeds: int = 200) -> str:
    """What the simulation says about the bug that is there."""
    return next(heads(GroupWorld, range(seeds)))


_MANY_SEEDS = pytest.mark.everything("few of many seeds show it")


@_MANY_SEEDS
def test_a_member_that_reports_only_what_it_has_reconciled(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the Java client does; see docs/decisions/0004."""

    def claimed(work: CallbackWork) -> object:
        current = work.assignment.current
        return () if current is None else group_by_topic(current.partitions)

    monkeypatch.setattr(CallbackWork, "claimed", claimed)
    assert "Violation: Lease" in found()


def test_a_coordinator_that_gives_away_what_somebody_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    original = current_assignment.reconcile

    def reconcile(member: Any, step: Any) -> Any:
        object.__setattr__(step, "holders", {})
        return original(member, step)

    monkeypatch.setattr(
        "mock_coordinator.core.groups.membership.member_update.reconcile", reconcile
    )
    assert "Violation: SoleHolder" in found()


def test_a_coordinator_that_does_not_wait_for_a_revocation(monkeypatch: pytest.MonkeyPatch) -> None:
    def owns_nothing(*_: object) -> bool:
        return False

    monkeypatch.setattr(current_assignment.Reconciliation, "owns_any", owns_nothing)
    assert "Violation: Lease" in found()


def test_a_coordinator_that_takes_members_with_patterns_for_equals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Kafka does so in one case, see ``sim.blind_targets``; in all others it shows."""
    for module in (target_assignment, consumer_group):
        original = module.subscription_type

        def equal(
            count: int,
            names: Mapping[str, tuple[int, int]],
            regexes: Collection[int],
            ask: Callable[..., SubscriptionType] = original,
        ) -> SubscriptionType:
            return SubscriptionType.HOMOGENEOUS if regexes else ask(count, names, regexes)

        monkeypatch.setattr(module, "subscription_type", equal)
    assert "nobody has" in found()


def test_a_coordinator_whose_sessions_never_end(monkeypatch: pytest.MonkeyPatch) -> None:
    arm = Timers.arm

    def deaf(timers: Timers, timer: Timer, deadline_ms: int, payload: int = 0) -> None:
        if timer.kind is not TimerKind.SESSION:
            arm(timers, timer, deadline_ms, payload)

    monkeypatch.setattr(Timers, "arm", deaf)
    assert "has a member that is gone" in found()


def test_a_replay_that_forgets_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    replay: Callable[..., Any] = vars(groups.GroupCoordinator)["replay"].__func__

    def forgetful(
        cls: type[Any],
        profile: Any,
        config: Any,
        catalog: Any,
        new_id: Any,
        records: Any,
        now_ms: int,
        journal: Any,
    ) -> Any:
        return replay(cls, profile, config, catalog, new_id, tuple(records)[:-1], now_ms, journal)

    monkeypatch.setattr(groups.GroupCoordinator, "replay", classmethod(forgetful))
    assert "Violation: ReplayDiffers" in found()


@_MANY_SEEDS
def test_a_member_that_does_not_mind_a_fence(monkeypatch: pytest.MonkeyPatch) -> None:
    def lenient(
        refused: HeartbeatRefused, *, member_epoch: int, may_hold_instance: bool
    ) -> Reaction:
        verdict = _error_rules.reaction(
            refused, member_epoch=member_epoch, may_hold_instance=may_hold_instance
        )
        return Reaction.RETRY if verdict is Reaction.FENCE else verdict

    monkeypatch.setattr(_core, "reaction", lenient)
    assert "is not known to the coordinator" in found()


def test_a_member_that_asks_early_although_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    def sent(settling: ExtraHeartbeats, now_ms: int, interval_ms: int, **_: object) -> None:
        settling.due_ms = now_ms + interval_ms * 9 // 10

    monkeypatch.setattr(ExtraHeartbeats, "sent", sent)
    assert "sooner than the interval" in (problem := found()) or "EarlyHeartbeats" in problem


@_MANY_SEEDS
def test_a_member_whose_extra_heartbeats_do_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def target_changed(settling: ExtraHeartbeats, now_ms: int, interval_ms: int) -> None:
        settling._left = 1_000
        settling.progress(now_ms, 100 * interval_ms)

    monkeypatch.setattr(ExtraHeartbeats, "target_changed", target_changed)
    assert "Violation: EarlyHeartbeats" in found()


@_MANY_SEEDS
def test_an_automatic_commit_that_falls_behind_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*_: object) -> None:
        return None

    monkeypatch.setattr(OffsetTracker, "processed", nothing)
    assert "Violation: Commits" in found()


@_MANY_SEEDS
def test_a_tracker_that_commits_what_was_not_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    delivered = OffsetTracker.delivered

    def eager(tracker: OffsetTracker, tp: Any, next_offset: int, leader_epoch: int = -1) -> bool:
        return delivered(tracker, tp, next_offset + 100, leader_epoch)

    monkeypatch.setattr(OffsetTracker, "delivered", eager)
    assert "Violation: Deliveries" in found()


@_MANY_SEEDS
def test_a_commit_left_out_before_everything_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    flush = CallbackWork._flush

    def forgetful(work: CallbackWork, step: Any, revoked: Any, by_ms: int) -> None:
        if revoked == work.assignment.assigned:
            work._after_flush(step)
        else:
            flush(work, step, revoked, by_ms)

    monkeypatch.setattr(CallbackWork, "_flush", forgetful)
    assert "Violation: Flushed" in found()


def test_a_rebalance_that_begins_retained_partitions_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the user had paused is then handed out again."""

    def anew(assignment: Any, _new: Any) -> AssignPartitions:
        return AssignPartitions(assignment, assignment)

    monkeypatch.setattr(_listener_calls, "AssignPartitions", anew)
    assert "it is paused" in found()


def test_a_connection_that_is_kept_after_a_time_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def keep(connection: ClientConnection, number: int) -> None:
        waiting = connection._waiting.pop(number, None)
        if waiting is not None:
            waiting.done(LossReason.TIMED_OUT)

    monkeypatch.setattr(ClientConnection, "_time_out", keep)
    assert "Violation: Network" in found()


def test_a_coordinator_that_dates_partitions_into_the_future(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reconcile = current_assignment.reconcile

    def dated(member: Any, step: Any) -> Any:
        value = reconcile(member, step)
        later = {
            topic: {partition: epoch + 1 for partition, epoch in numbers.items()}
            for topic, numbers in value.assigned.items()
        }
        return replace(value, assigned=later)

    monkeypatch.setattr("mock_coordinator.core.groups.membership.member_update.reconcile", dated)
    assert "Violation: AssignmentEpochs" in found()


def test_a_fetch_core_that_hands_out_what_is_being_revoked(monkeypatch: pytest.MonkeyPatch) -> None:
    mark = FetchCore._mark

    def lenient(core: FetchCore, partition: Partition, reason: int, *, on: bool) -> bool:
        return mark(core, partition, reason, on=on and reason != HELD)

    monkeypatch.setattr(FetchCore, "_mark", lenient)
    assert "is handed out and not fetchable" in found()


@_MANY_SEEDS
def test_a_fetch_core_that_begins_behind_what_is_committed(monkeypatch: pytest.MonkeyPatch) -> None:
    stand_at = Partition.stand_at

    def later(partition: Partition, generation: int, offset: int, epoch: int) -> None:
        stand_at(partition, generation, offset + (offset > 0), epoch)

    monkeypatch.setattr(Partition, "stand_at", later)
    assert "Violation: Deliveries" in found()
