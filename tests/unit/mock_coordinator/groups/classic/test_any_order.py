"""Classic groups under requests in any order: what must hold whatever happens."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import given, settings
from hypothesis import strategies as st

from mock_coordinator.core.groups import GroupCoordinator, GroupSnapshot
from tests.support.examples import examples
from tests.unit.mock_coordinator.groups.classic._classic_harness import ClassicGroupHarness

NAMES = ("A", "B", "C", "D")
PROTOCOLS = st.lists(st.sampled_from(["range", "sticky", "odd"]), min_size=1, unique=True)
STATIC = {"C": "i1", "D": "i1"}
"""Two that fight for one instance id."""


@settings(max_examples=examples(150))
@given(st.data())
def test_whatever_is_asked_in_whatever_order(data: st.DataObject) -> None:
    harness = ClassicGroupHarness(delay_ms=data.draw(st.sampled_from([0, 2_000])))
    for _ in range(data.draw(st.integers(1, 30))):
        name = data.draw(st.sampled_from(NAMES))
        data.draw(st.sampled_from(STEPS))(harness, name, data)
        harness.late()
        check(harness)
    quiet(harness)


def join(harness: ClassicGroupHarness, name: str, data: st.DataObject) -> None:
    harness.join(
        name,
        *data.draw(PROTOCOLS),
        version=data.draw(st.sampled_from([3, 4, 9] if name not in STATIC else [5, 8, 9])),
        instance=STATIC.get(name),
        id_="" if data.draw(st.booleans()) and name in STATIC else None,
        topics=data.draw(st.sampled_from([("foo",), ("foo", "bar")])),
        kind=data.draw(st.sampled_from(["consumer"] * 5 + ["connect"])),
        rebalance_ms=data.draw(st.sampled_from([1_000, 30_000])),
    )


def sync(harness: ClassicGroupHarness, name: str, data: st.DataObject) -> None:
    if harness.now.state == "Dead":
        return
    harness.sync(name, {each: each.encode() for each in harness.ids})


def beat(harness: ClassicGroupHarness, name: str, data: st.DataObject) -> None:
    assert harness.beat(name, instance=STATIC.get(name)) in (0, 22, 25, 27, 82)


def leave(harness: ClassicGroupHarness, name: str, data: st.DataObject) -> None:
    if harness.now.state != "Dead":
        assert set(harness.leave(name)) <= {0, 25}


def wait(harness: ClassicGroupHarness, name: str, data: st.DataObject) -> None:
    harness.pass_ms(data.draw(st.sampled_from([1_000, 5_000, 31_000, 301_000])))


def crash(harness: ClassicGroupHarness, name: str, data: st.DataObject) -> None:
    harness.restart()
    harness.forget_requests()


STEPS: list[Callable[[ClassicGroupHarness, str, st.DataObject], None]] = [
    *([join] * 4),
    *([sync] * 3),
    beat,
    leave,
    wait,
    crash,
]


def check(harness: ClassicGroupHarness) -> None:
    """One state, told in several ways."""
    snapshot = harness.groups.snapshot("g")
    if snapshot is None:
        return
    assert snapshot.classic is not None
    group = snapshot.classic
    members = group.members.values()
    joining = [each for each in members if each.joining]
    syncing = [each for each in members if each.syncing]
    assert (group.leader in group.members) == bool(group.members)
    assert not set(group.pending_joins) & set(group.members)
    instances = [each.instance_id for each in members if each.instance_id is not None]
    assert len(instances) == len(set(instances))
    if snapshot.state in ("Empty", "Stable"):
        assert not joining
        assert not syncing
        assert group.join_deadline_ms is None
    if snapshot.state == "Empty":
        assert not group.members
        assert group.sync_deadline_ms is None
    if snapshot.state == "PreparingRebalance":
        assert group.join_deadline_ms is not None
        assert not syncing
    if snapshot.state == "CompletingRebalance":
        assert group.members
        assert group.sync_deadline_ms is not None
        assert group.leader not in {each.member_id for each in syncing}  # its sync ends the wait
    for each in members:  # nobody is waited for without end
        assert each.session_deadline_ms is not None or each.joining or each.syncing
    assert survivor(harness.groups) == survivor(again(harness))


def again(harness: ClassicGroupHarness) -> GroupCoordinator:
    consumers = harness.consumers
    records = harness.groups.records
    return GroupCoordinator.replay(
        consumers.profile,
        consumers.config,
        consumers.catalog,
        lambda: "unused",
        records,
        consumers.now,
    )


def survivor(groups: GroupCoordinator) -> GroupSnapshot | None:
    snapshot = groups.snapshot("g")
    return None if snapshot is None else snapshot.without_timers()


def quiet(harness: ClassicGroupHarness) -> None:
    """Left alone, every request is answered and the group ends empty, or is gone."""
    for _ in range(4):
        harness.pass_ms(400_000)
        harness.late()
    assert harness.now.state in ("Empty", "Dead")
