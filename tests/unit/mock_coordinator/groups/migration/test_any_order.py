"""Mixed groups under requests in any order: what must hold whatever happens."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from kip848_client.core.wire.messages.classic_group import (
    LeaveGroupRequest,
    LeaveGroupRequestMemberIdentity,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups import GroupCoordinator
from mock_coordinator.core.groups.state.consumer_group import ConsumerGroup
from tests.support.examples import examples
from tests.unit.mock_coordinator.groups._group_harness import ALL_PROFILES
from tests.unit.mock_coordinator.groups.migration._mixed_harness import (
    MixedGroupHarness,
    assigns,
    brings,
)

CLASSIC = ("c1", "c2", "c3")
NEW = ("N", "M")
INSTANCES = {"c3": "i1", "M": "i1"}
"""Two, of either protocol, that fight for one instance id."""


@settings(max_examples=examples(150))
@given(st.data())
def test_whatever_is_asked_in_whatever_order(data: st.DataObject) -> None:
    policies = st.sampled_from(["bidirectional"] * 3 + ["upgrade", "downgrade", "disabled"])
    harness = MixedGroupHarness(
        data.draw(st.sampled_from(ALL_PROFILES)),
        group_consumer_migration_policy=data.draw(policies),
    )
    for _ in range(data.draw(st.integers(1, 30))):
        act(harness, data)
        harness.pass_ms(0)
        harness.late()
        check(harness)


def act(harness: MixedGroupHarness, data: st.DataObject) -> None:
    pick = data.draw
    if pick(st.booleans()):
        classic(harness, pick(st.sampled_from(CLASSIC)), data)
    elif pick(st.integers(0, 4)):
        new(harness, pick(st.sampled_from((*NEW, *harness.ids.values()))), data)
    elif pick(st.booleans()):
        harness.pass_ms(pick(st.sampled_from([1_000, 9_000, 31_000, 46_000])))
    else:
        harness.restart()
        harness.forget_requests()


def owned(harness: MixedGroupHarness, member_id: str) -> dict[str, list[int]]:
    """What the member may use, as the coordinator has it."""
    group = harness.groups.snapshot("g")
    known = group is not None and member_id in group.members
    return harness.consumers.owned(member_id) if known else {}


def classic(harness: MixedGroupHarness, name: str, data: st.DataObject) -> None:
    pick = data.draw
    instance = INSTANCES.get(name)
    match pick(st.sampled_from(["join", "join", "sync", "beat", "leave"])):
        case "join":
            mine = owned(harness, harness.ids.get(name, name)) if pick(st.booleans()) else {}
            wanted = pick(st.sampled_from([("foo",), ("foo", "bar")]))
            harness.join(
                name,
                *pick(st.sampled_from([("range",), ("range", "sticky"), ("sticky",)])),
                version=pick(st.sampled_from([3, 9] if instance is None else [5, 9])),
                instance=instance,
                id_="" if instance is not None and pick(st.booleans()) else None,
                metadata=pick(st.sampled_from([brings(*wanted, owned=mine)] * 9 + [b"\0"])),
                rebalance_ms=pick(st.sampled_from([2_000, 30_000])),
            )
        case "sync":
            split = {each: assigns({"foo": [number]}) for number, each in enumerate(harness.ids)}
            harness.ask_for(name, split)
        case "beat":
            assert harness.beat(name, instance=instance) in (0, 22, 25, 27, 82)
        case _:
            member = LeaveGroupRequestMemberIdentity(member_id=harness.ids.get(name, name))
            harness.send("admin", LeaveGroupRequest(group_id="g", members=(member,)), 5)


def new(harness: MixedGroupHarness, member_id: str, data: st.DataObject) -> None:
    pick = data.draw
    instance = INSTANCES.get(member_id)
    group = harness.groups.snapshot("g")
    known = None if group is None else group.members.get(member_id)
    match pick(st.sampled_from(["join", "beat", "beat", "leave"])):
        case "join":
            names = pick(st.sampled_from([("foo",), ("foo", "bar")]))
            answer = harness.consumers.join(member_id, names, inst=instance)
            assert answer.error in (
                0,
                ErrorCode.UNKNOWN_MEMBER_ID,
                ErrorCode.GROUP_ID_NOT_FOUND,
                ErrorCode.FENCED_INSTANCE_ID,
                ErrorCode.FENCED_MEMBER_EPOCH,
                ErrorCode.UNRELEASED_INSTANCE_ID,
                ErrorCode.UNKNOWN_SERVER_ERROR,
            )
        case "beat" if known is not None:
            harness.consumers.beat(member_id, known.epoch, owned(harness, member_id), inst=instance)
        case "leave":
            away = instance is not None and pick(st.booleans())
            harness.consumers.beat(member_id, -2 if away else -1, inst=instance)
        case _:
            harness.consumers.beat(member_id, pick(st.integers(1, 5)))


def check(harness: MixedGroupHarness) -> None:
    """No partition is two members', the counters are right, and the records have it all."""
    again = GroupCoordinator.replay(
        harness.consumers.profile,
        harness.consumers.config,
        harness.consumers.catalog,
        lambda: "unused",
        harness.groups.records,
        harness.consumers.now,
    )
    live, rebuilt = harness.groups.snapshot("g"), again.snapshot("g")
    if live is None:
        # Kafka forgets an empty group that is joined by member id, and its records stay
        assert rebuilt is None or rebuilt.state == "Empty"
        return
    assert rebuilt is not None
    assert rebuilt.without_timers() == live.without_timers()
    held = Counter(
        (topic_id, partition)
        for member in live.members.values()
        for partitions in (member.owned, member.pending_revocation)
        for topic_id, numbers in partitions.items()
        for partition in numbers
    )
    assert not held or held.most_common(1)[0][1] == 1
    group = harness.groups._env.state.groups["g"]
    if isinstance(group, ConsumerGroup):
        said = [member.classic for member in group.members.values() if member.classic is not None]
        assert group.classic_members == len(said)
        offered = Counter(each.name for one in said for each in one.supported_protocols)
        assert group.classic_protocols == dict(offered)
