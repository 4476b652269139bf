"""Fail-over from the bytes of the log: whoever takes over at any moment knows what was true then.

A random conversation is played on a coordinator that writes to a partition of
``__consumer_offsets``. After every step its log is copied as a new leader would find it, whole or
compacted, and what a replay of the copy says must be what the living coordinator knew.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from mock_coordinator.core.groups import GroupCoordinator, GroupSnapshot, GroupType
from mock_coordinator.core.logs.log import Logs
from mock_coordinator.core.state.offsets_log import OffsetsLog
from mock_coordinator.core.topics.catalog import Catalog
from tests.support.examples import examples
from tests.unit.mock_coordinator.groups._group_harness import ALL_PROFILES, GroupHarness
from tests.unit.mock_coordinator.groups.test_replay import _play


def harness_on_a_log(profile: str) -> tuple[GroupHarness, OffsetsLog]:
    harness = GroupHarness(profile)
    journal = OffsetsLog(harness.profile, Catalog(), Logs(), 0)
    harness.groups = GroupCoordinator(
        harness.profile, harness.config, harness.catalog, lambda: "unused", harness.now, journal
    )
    return harness, journal


def copied(harness: GroupHarness, journal: OffsetsLog) -> OffsetsLog:
    """The log as another broker has it."""
    copy = OffsetsLog(harness.profile, Catalog(), Logs(), 0)
    for batch in journal.log.batches:
        copy.log.restore(batch.data)
    return copy


def known(groups: GroupCoordinator, *, compacted: bool) -> dict[str, GroupSnapshot]:
    """What must survive. A classic group that only offsets made is forgotten with the last of them
    when the log is compacted, as in Kafka."""
    found: dict[str, GroupSnapshot] = {}
    for group_id in groups.group_ids:
        snapshot = groups.snapshot(group_id)
        assert snapshot is not None
        if not compacted or snapshot.offsets or snapshot.type is GroupType.CONSUMER:
            found[group_id] = snapshot.without_timers()
    return found


def taken_over(harness: GroupHarness, journal: OffsetsLog) -> GroupCoordinator:
    return GroupCoordinator.replay(
        harness.profile,
        harness.config,
        harness.catalog,
        lambda: "unused",
        journal.records,
        harness.now,
        journal,
    )


@settings(max_examples=examples(60))
@given(st.sampled_from(ALL_PROFILES), st.integers(1, 20), st.data())
def test_a_new_leader_knows_what_the_old_one_knew(
    profile: str, steps: int, data: st.DataObject
) -> None:
    harness, journal = harness_on_a_log(profile)
    thinned = False
    for _ in range(steps):
        _play(harness, data)
        whole, thin = copied(harness, journal), copied(harness, journal)
        thin.compact()
        for copy, compacted in ((whole, thinned), (thin, True)):
            successor = taken_over(harness, copy)
            assert known(successor, compacted=compacted) == known(
                harness.groups, compacted=compacted
            )
        assert whole.log.high_watermark == thin.log.high_watermark
        if data.draw(st.integers(0, 5)) == 0:
            journal.compact()  # and the living one goes on
            thinned = True


@settings(max_examples=examples(40))
@given(st.sampled_from(ALL_PROFILES), st.integers(2, 16), st.data())
def test_a_crash_goes_back_to_a_moment_that_was(
    profile: str, steps: int, data: st.DataObject
) -> None:
    """A disk that was behind: the log is cut at some decision. The groups are then as they were
    when that decision had been made, and the coordinator goes on from there."""
    harness, journal = harness_on_a_log(profile)
    journal.compacts = False
    moments = {0: known(harness.groups, compacted=False)}
    for _ in range(steps):
        _play(harness, data)
        moments[journal.log.high_watermark] = known(harness.groups, compacted=False)
    offset = data.draw(st.sampled_from(sorted(moments)))
    journal.truncate(offset)
    harness.groups = taken_over(harness, journal)
    assert known(harness.groups, compacted=False) == moments[offset]
    for _ in range(3):
        _play(harness, data)
    again = taken_over(harness, copied(harness, journal))
    assert known(again, compacted=True) == known(harness.groups, compacted=True)
