"""The four tables, of histories that can be followed by eye, and of any."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from kip848_client.core.types import TopicPartition
from kip848_client.history.core import (
    HeartbeatSla,
    HistoryEvent,
    PartitionDowntime,
    RebalanceDuration,
    ZombieCommit,
    gaps_of,
    tables_of,
)
from tests.support.histories import any_history, event

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


def assigned(time_ms: int, member: str, *tps: TopicPartition, **said: object) -> HistoryEvent:
    return event("assigned", time_ms, member, partitions=tps, **said)


def seen(kind: str, time_ms: int, member: str | None, **said: object) -> HistoryEvent:
    """By the coordinator."""
    return event(kind, time_ms, member, role="coordinator", writer=f"c-{member}", host="c", **said)


def downtime(*events: HistoryEvent) -> PartitionDowntime:
    (row,) = tables_of(events).partition_downtime
    return row


# -- partition_downtime ----------------------------------------------------------------------


def test_the_time_between_two_owners_is_downtime() -> None:
    row = downtime(
        assigned(10, "m", A0), event("revoked", 50, "m", partitions=(A0,)), assigned(80, "n", A0)
    )
    assert row == PartitionDowntime("g", "a", 0, 10, 80, 2, 30, 1, 30, 0)


def test_a_member_that_vanished_owned_until_it_was_last_heard_of() -> None:
    row = downtime(assigned(10, "m", A0), event("heartbeat", 40, "m"), assigned(90, "n", A0))
    assert (row.downtime_ms, row.longest_gap_ms) == (50, 50)
    heard = seen("heartbeat", 60, "m")
    assert downtime(assigned(10, "m", A0), heard, assigned(90, "n", A0)).downtime_ms == 30


def test_two_owners_at_once_are_no_gap_but_an_overlap() -> None:
    row = downtime(
        assigned(0, "m", A0),
        assigned(20, "n", A0),
        event("lost", 50, "m", partitions=(A0,)),
        event("revoked", 60, "n", partitions=(A0,)),
    )
    assert (row.downtime_ms, row.gaps, row.overlap_ms) == (0, 0, 30)


def test_before_the_first_owner_and_after_the_last_is_no_downtime() -> None:
    row = downtime(event("started", 0, "m"), assigned(500, "m", A0), event("stopped", 900, "n"))
    assert (row.first_owned_ms, row.last_owned_ms, row.downtime_ms) == (500, 500, 0)


def test_a_revocation_that_comes_again_ends_it_at_the_first() -> None:
    first, again = (event("revoked", at, "m", partitions=(A0,)) for at in (10, 30))
    assert downtime(assigned(0, "m", A0), first, again, assigned(40, "n", A0)).downtime_ms == 30


def test_of_a_member_without_events_the_coordinator_tells() -> None:
    row = downtime(
        seen("assigned", 0, "m", partitions=(A0,)),
        seen("lost", 10, "m", partitions=(A0,)),
        assigned(30, "n", A0),
        seen("assigned", 12, "n", partitions=(A0,)),  # n itself knows better
    )
    assert row.downtime_ms == 20


def test_a_gap_says_who_had_it_before_and_after_and_why_no_more() -> None:
    owned = tables_of([assigned(0, "m", A0), assigned(30, "n", A0)]).tenures
    (gap,) = gaps_of(owned)
    assert (gap.start_ms, gap.end_ms, gap.before, gap.after, gap.how) == (
        0,
        30,
        "m",
        "n",
        "vanished",
    )


@given(st.integers(0, 1 << 32))
def test_downtime_and_overlap_are_those_of_counting_milliseconds(seed: int) -> None:
    tables = tables_of(any_history(Random(seed), "g", 30))
    for row in tables.partition_downtime:
        mine = [t for t in tables.tenures if (t.topic, t.partition) == (row.topic, row.partition)]
        owners = [
            sum(t.start_ms <= at < t.end_ms for t in mine)
            for at in range(row.first_owned_ms, row.last_owned_ms)
        ]
        assert row.downtime_ms == owners.count(0)
        assert row.overlap_ms == sum(each - 1 for each in owners if each)
        assert row.longest_gap_ms <= row.downtime_ms
        assert bool(row.gaps) == bool(row.downtime_ms)
        assert sum(gap[:3] == row[:3] for gap in gaps_of(tables.tenures)) == row.gaps


# -- heartbeat_sla ---------------------------------------------------------------------------


def test_heartbeats_are_counted_and_ranked() -> None:
    beats = [event("heartbeat", 100 * n, duration_ms=n) for n in range(1, 101)]
    lost = [event("heartbeat_lost", 20_001), event("heartbeat_refused", 20_002)]
    (row,) = tables_of([*beats, *lost], sla_ms=90).heartbeat_sla
    assert row == HeartbeatSla("g", "m", 100, 1, 1, 90, 50, 99, 100, 100)


def test_silence_is_between_answers_and_one_answer_has_its_own_quantiles() -> None:
    (row,) = tables_of([event("heartbeat", 5, duration_ms=7)]).heartbeat_sla
    assert (row.p50_ms, row.p99_ms, row.max_ms, row.longest_silence_ms) == (7, 7, 7, 0)
    both = [event("heartbeat", at) for at in (5, 905)]
    (row,) = tables_of(both).heartbeat_sla
    assert (row.p50_ms, row.longest_silence_ms, row.in_time) == (None, 900, 0)


# -- rebalance_duration ----------------------------------------------------------------------


def test_a_rebalance_lasts_from_the_groups_epoch_to_the_last_step() -> None:
    rows = tables_of(
        [
            seen("group_epoch", 100, None, group_epoch=5),
            event("epoch", 130, "m", member_epoch=5),
            event("epoch", 170, "n", member_epoch=5),
            assigned(190, "n", A0, A1, member_epoch=5),
            event("heartbeat", 900, "n", member_epoch=5),
            seen("group_epoch", 200, None, group_epoch=6),  # nobody came to it
            event("epoch", 260, "m", member_epoch=7),
        ]
    ).rebalance_duration
    assert rows == (
        RebalanceDuration("g", 5, 100, 190, 90, 2, 2),
        RebalanceDuration("g", 7, 260, 260, 0, 1, 0),
    )


# -- zombie_commits --------------------------------------------------------------------------


def test_a_commit_over_another_owners_is_a_zombies() -> None:
    tables = tables_of(
        [
            seen("assigned", 0, "m", partitions=(A0, A1)),
            seen("lost", 50, "m", partitions=(A0, A1)),
            seen("assigned", 60, "n", partitions=(A0,)),
            seen("committed", 40, "m", partitions=(A0,), member_epoch=3),
            seen("committed", 55, "m", partitions=(A0,), member_epoch=3),  # nobody had it
            seen("committed", 70, "m", partitions=(A0, A1), member_epoch=3),
            seen("committed", 71, "n", partitions=(A0,), member_epoch=4),
            seen("heartbeat", 90, "n"),
        ]
    )
    assert tables.zombie_commits == (ZombieCommit("g", "m", 70, 3, "a", 0, "accepted", None, "n"),)


def test_a_member_that_was_put_out_and_does_not_know_makes_nobody_a_zombie() -> None:
    """It says itself that it owns the partition; the coordinator gave it to another, who gives it
    up, and commits before that."""
    tables = tables_of(
        [
            assigned(0, "old", A0),
            event("heartbeat", 200, "old"),
            seen("assigned", 0, "old", partitions=(A0,)),
            seen("lost", 50, "old", partitions=(A0,)),
            seen("assigned", 60, "new", partitions=(A0,)),
            assigned(61, "new", A0),
            event("revoked", 90, "new", partitions=(A0,)),
            seen("committed", 95, "new", partitions=(A0,)),
            seen("revoked", 99, "new", partitions=(A0,)),
        ]
    )
    assert tables.zombie_commits == ()
    assert tables.partition_downtime[0].overlap_ms == 29


def test_a_refusal_is_told_once_by_the_coordinator_and_else_by_the_member() -> None:
    own = event("commit_refused", 5, "m", partitions=(A0,), cause="STALE_MEMBER_EPOCH")
    by_member = tables_of([own]).zombie_commits
    assert [(row.outcome, row.cause, row.owner) for row in by_member] == [
        ("refused", "STALE_MEMBER_EPOCH", None)
    ]
    told = seen("commit_refused", 4, "m", partitions=(A0,), cause="UNKNOWN_MEMBER_ID")
    assert [row.cause for row in tables_of([own, told]).zombie_commits] == ["UNKNOWN_MEMBER_ID"]


# -- clocks, repetitions, order --------------------------------------------------------------


def _beats(ahead_ms: int, latencies: Sequence[tuple[int, int]]) -> list[HistoryEvent]:
    """Heartbeats of a member whose clock is ahead: to the coordinator, and back."""
    found: list[HistoryEvent] = []
    for number, (there, back) in enumerate(latencies):
        sent = 10_000 + 5_000 * number
        found.append(seen("heartbeat", sent + there, "m", member_epoch=1))
        answered = sent + there + back
        found.append(
            event("heartbeat", answered + ahead_ms, member_epoch=1, duration_ms=there + back)
        )
    return found


LATENCIES = st.lists(st.tuples(st.integers(0, 90), st.integers(0, 90)), min_size=1, max_size=8)


@given(st.integers(-9_000, 9_000), LATENCIES)
def test_a_wrong_clock_is_put_right_as_far_as_it_can_be_known(
    ahead_ms: int, latencies: list[tuple[int, int]]
) -> None:
    tables = tables_of(_beats(ahead_ms, latencies))
    offset = tables.clock_offsets.get("h", 0)
    assert abs(offset + ahead_ms) <= min(there + back for there, back in latencies)
    assert abs(offset) <= abs(ahead_ms), "never more than it takes"
    moved = [e.time_ms for e in tables.events if e.is_members]
    assert moved == [e.time_ms + offset for e in _beats(ahead_ms, latencies) if e.is_members]


def test_a_clock_is_left_alone_that_may_be_right_or_that_nothing_explains() -> None:
    assert not tables_of(_beats(0, [(3, 4), (50, 0)])).clock_offsets
    torn = _beats(-5_000, [(3, 4)]) + [replace(e, seq=-1) for e in _beats(5_000, [(3, 4)])]
    assert not tables_of(torn).clock_offsets
    lost = _beats(5_000, [(3, 4), (3, 4)])
    assert not tables_of(lost[:-1]).clock_offsets, "who answered what is not known"


@given(st.integers(0, 1 << 32))
def test_neither_order_nor_repetition_matters(seed: int) -> None:
    events = any_history(Random(seed), "g", 25)
    tables = tables_of(events)
    assert tables_of(reversed(events + events)) == tables


def test_nothing_comes_of_nothing() -> None:
    tables = tables_of([])
    found = (tables.events, tables.tenures, tables.partition_downtime, tables.heartbeat_sla)
    assert not any(found)


def test_groups_do_not_mix() -> None:
    first, second = (any_history(Random(3), group, 40) for group in ("g1", "g2"))
    both, alone = tables_of(first + second), tables_of(second)
    for name in ("partition_downtime", "heartbeat_sla", "rebalance_duration", "zombie_commits"):
        mine = tuple(row for row in getattr(both, name) if row.group_id == "g2")
        assert mine == getattr(alone, name)
