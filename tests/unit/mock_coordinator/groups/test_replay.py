"""Whatever happens, the records are all of it: replaying them gives the same groups.

A random conversation (sensible and foolish requests, topic changes, time) is played on a
coordinator of a random profile. At the end, and after compaction, a replay must equal the living
coordinator except for timers. On the way every derived number is compared with the plain way to
compute it, and a refused request must leave no record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from kip848_client.core.wire.messages.groups import DeleteGroupsRequest
from kip848_client.core.wire.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from mock_coordinator.core.groups import GroupCoordinator, GroupState, MemberState, StateRecord
from mock_coordinator.core.groups.state.consumer_group import ConsumerGroup
from mock_coordinator.core.groups.state.groups_state import ClassicGroup
from tests.support.examples import examples
from tests.unit.mock_coordinator.groups._group_harness import ALL_PROFILES, GroupHarness

MEMBERS = "ABCD"
NAMES: Sequence[tuple[str, ...]] = (("foo",), ("bar",), ("foo", "bar"), (), ("nope", "foo"))
REGEXES = (None, None, "", "foo.*", ".*", "b.*", "foo[")


def _play(harness: GroupHarness, data: st.DataObject) -> None:
    """One random action."""
    pick = data.draw
    member = pick(st.sampled_from(MEMBERS))
    group = harness.groups.snapshot("g")
    known = None if group is None else group.members.get(member)
    epoch = 0 if known is None else known.epoch
    action = pick(
        st.sampled_from(
            ["join", "beat", "beat", "beat", "leave", "away", "commit", "time", "topic", "delete"]
        )
    )
    if action == "join":
        inst = pick(st.sampled_from([None, None, "i1", "i2"]))
        if known is not None and group is not None and inst != known.subscription.instance_id:
            # a member that takes another one's place leaves its own regex resolved (F03)
            holders = {each.subscription.instance_id for each in group.members.values()}
            inst = None if inst in holders else inst
        names, regex = pick(st.sampled_from(NAMES)), pick(st.sampled_from(REGEXES))
        assignor = pick(st.sampled_from([None, "range", "uniform"]))
        harness.join(member, names, regex=regex, inst=inst, assignor=assignor)
    elif action == "beat":
        _beat(harness, data, member, epoch)
    elif action == "leave":
        harness.beat(member, -1)
    elif action == "away":
        harness.beat(member, -2, inst=None if known is None else known.subscription.instance_id)
    elif action == "commit":
        who = pick(st.sampled_from([member, "", "Z"]))
        at = pick(st.sampled_from([epoch, -1, epoch - 1]))
        group_id = pick(st.sampled_from(["g", "g", "s"]))
        harness.commit(who, at, {"foo": {pick(st.integers(0, 6)): 1}}, group=group_id)
    elif action == "time":
        harness.pass_ms(pick(st.sampled_from([0, 1, 999, 10_001, 45_000, 600_000])))
    elif action == "topic":
        _change_topics(harness, data)
    else:
        _delete(harness, data)


def _beat(harness: GroupHarness, data: st.DataObject, member: str, epoch: int) -> None:
    pick = data.draw
    group = harness.groups.snapshot("g")
    owned = None
    if group is not None and member in group.members and pick(st.booleans()):
        owned = harness.owned(member)
        if pick(st.integers(0, 4)) == 0:
            owned = {name: numbers[:1] for name, numbers in owned.items()}
    harness.beat(
        member,
        epoch + pick(st.sampled_from([0, 0, 0, 0, -1, 1])),
        owned,
        names=pick(st.sampled_from([None, None, None, *NAMES])),
        regex=pick(st.sampled_from([None, None, None, *REGEXES])),
        assignor=pick(st.sampled_from([None, None, "range", "xyz"])),
    )


def _change_topics(harness: GroupHarness, data: st.DataObject) -> None:
    foo = harness.catalog.topic("foo")
    if foo is None:
        harness.create("foo", 4)
    elif data.draw(st.booleans()):
        harness.grow("foo", foo.partitions + 1)
    else:
        harness.delete("foo")


def _delete(harness: GroupHarness, data: st.DataObject) -> None:
    if data.draw(st.booleans()):
        harness.ask(DeleteGroupsRequest(groups_names=("g", "s")), 2)
        return
    part = OffsetDeleteRequestPartition(partition_index=data.draw(st.integers(0, 3)))
    topic = OffsetDeleteRequestTopic(name="foo", partitions=(part,))
    harness.ask(OffsetDeleteRequest(group_id="s", topics=(topic,)), 0)


# --- What must hold -------------------------------------------------------------------------------


def _check_derived(group: ConsumerGroup) -> None:
    """The numbers that are kept in step, against the plain way to compute them."""
    members = group.members.values()
    names = Counter(name for m in members for name in m.subscription.subscribed_topic_names)
    assert group.by_name == dict(names)
    used = Counter(m.subscription.subscribed_topic_regex for m in members)
    used.pop("", None)
    assert group.regexes == dict(used)
    assert group.by_regex == dict(
        Counter(topic for regex in group.resolved.values() for topic in regex.topics)
    )
    assert set(group.resolved) <= set(used)
    votes = Counter(m.subscription.server_assignor for m in members)
    votes.pop(None, None)
    assert group.votes == dict(votes)
    assert sorted(group.vote_order) == sorted(votes, key=str)
    assert sorted(group.order) == sorted(group.members)
    held: dict[tuple[bytes, int], str] = {}
    for member in members:
        for owned in (member.assigned, member.pending_revocation):
            for topic_id, partitions in owned.items():
                for partition in partitions:
                    assert (topic_id, partition) not in held, "two members hold one partition"
                    held[topic_id, partition] = member.member_id
    assert held == {
        (topic_id, partition): member_id
        for topic_id, holders in group.holders.items()
        for partition, member_id in holders.items()
    }
    assert set(group.targets) <= set(group.members)
    assert group.static_members == {
        m.instance_id: m.member_id for m in members if m.instance_id is not None
    }
    assert group.state is _plain_state(group)


def _plain_state(group: ConsumerGroup) -> GroupState:
    members = group.members.values()
    if not members:
        return GroupState.EMPTY
    if group.epoch > group.assignment_epoch:
        return GroupState.ASSIGNING
    done = all(m.state is MemberState.STABLE and m.epoch == group.assignment_epoch for m in members)
    return GroupState.STABLE if done else GroupState.RECONCILING


def _compacted(records: Sequence[StateRecord]) -> list[StateRecord]:
    """The last record of every key, in the order of these."""
    last = {record.key: number for number, record in enumerate(records)}
    return [record for number, record in enumerate(records) if last[record.key] == number]


def _replayed(harness: GroupHarness, records: Sequence[StateRecord]) -> GroupCoordinator:
    return GroupCoordinator.replay(
        harness.profile, harness.config, harness.catalog, lambda: "unused", records, harness.now
    )


def _assert_same(harness: GroupHarness, other: GroupCoordinator, groups: Sequence[str]) -> None:
    for group_id in groups:
        living, copy = harness.groups.snapshot(group_id), other.snapshot(group_id)
        assert living is not None
        assert copy is not None
        assert copy.without_timers() == living.without_timers()


@settings(max_examples=examples(150))
@given(st.sampled_from(ALL_PROFILES), st.integers(1, 40), st.data())
def test_replaying_gives_the_same_groups(profile: str, steps: int, data: st.DataObject) -> None:
    harness = GroupHarness(profile)
    for _ in range(steps):
        _play(harness, data)
        for group in harness.groups._env.state.groups.values():
            if isinstance(group, ConsumerGroup):
                _check_derived(group)
    state = harness.groups._env.state
    copy = _replayed(harness, harness.groups.records)
    assert copy.group_ids == harness.groups.group_ids
    _assert_same(harness, copy, copy.group_ids)
    for group_id, group in state.groups.items():
        if isinstance(group, ConsumerGroup):
            again = copy._env.state.consumer_group(group_id)
            assert list(again.order) == list(group.order)
            assert list(again.vote_order) == list(group.vote_order)
    # a simple group without offsets has no record left after compaction, in Kafka neither
    compacted = _replayed(harness, _compacted(harness.groups.records))
    remaining = [
        group_id
        for group_id, group in state.groups.items()
        if not isinstance(group, ClassicGroup) or state.offsets.get(group_id)
    ]
    assert sorted(compacted.group_ids) == sorted(remaining)
    _assert_same(harness, compacted, remaining)


@settings(max_examples=examples(60))
@given(st.sampled_from(ALL_PROFILES), st.integers(1, 15), st.data())
def test_a_refused_heartbeat_leaves_no_trace(profile: str, steps: int, data: st.DataObject) -> None:
    harness = GroupHarness(profile)
    for _ in range(steps):
        _play(harness, data)
    harness.pass_ms(0)  # a resolution may be due
    before, records = harness.groups.snapshot("g"), len(harness.groups.records)
    refused = [
        harness.beat("A", 10_000),
        harness.beat("nobody", 3),
        harness.join("A", rto=-1),
        harness.beat("A", 0, {}, names=["foo"], rto=1, assignor="xyz"),
        harness.join("new", None, regex="foo["),
        harness.beat("A", 3, inst="nobody"),
    ]
    assert all(answer.error for answer in refused)
    assert len(harness.groups.records) == records
    assert harness.groups.snapshot("g") == before


def test_a_restart_keeps_epochs_and_starts_the_timers_again() -> None:
    harness = GroupHarness("4.4")
    harness.join("A", rto=20_000)
    harness.join("B")
    harness.beat("A", 2)
    harness.pass_ms(15_000)
    harness.restart()
    assert harness.shape() == "#G3/A3 Reconciling"
    a = harness.member("A")
    assert (a.session_deadline_ms, a.rebalance_deadline_ms) == (
        harness.now + 45_000,
        harness.now + 20_000,
    )
    assert harness.beat("A", 2, {"foo": range(3)}).epoch == 3
    harness.pass_ms(20_000)
    assert set(harness.group().members) == {"A", "B"}


def test_a_restart_notices_topic_changes_at_the_first_heartbeat() -> None:
    harness = GroupHarness("4.4")
    harness.join("A")
    harness.catalog.grow("foo", 7)  # nobody tells the group coordinator
    assert harness.beat("A", 2).epoch == 2
    harness.restart()
    assert harness.beat("A", 2).epoch == 3


def test_a_restart_drops_a_resolution_in_flight_and_asks_again() -> None:
    harness = GroupHarness("4.4")
    harness.join("A", None, regex="foo.*")
    assert harness.group().resolving
    harness.restart()
    assert not harness.group().resolving
    harness.beat("A", 1)
    assert harness.group().resolving


def test_tombstones_for_what_is_not_there_are_ignored() -> None:
    harness = GroupHarness("4.4")
    harness.join("A", inst="i", regex="foo.*")
    harness.pass_ms(0)
    harness.commit("A", 2, {"foo": {0: 1}})
    harness.beat("A", -1)
    harness.ask(DeleteGroupsRequest(groups_names=("g",)), 2)
    tombstones = [r for r in harness.groups.records if getattr(r, "value", None) is None]
    assert len({type(record) for record in tombstones}) >= 7
    empty = GroupHarness("4.4")
    copy = _replayed(empty, tombstones)
    assert copy.group_ids == ()
