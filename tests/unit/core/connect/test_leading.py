"""The leader of a classic group: which configuration, and what everybody is told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kip848_client.core.connect import (
    CONFIG_MISMATCH,
    Configuration,
    ConnectorTaskId,
    ConnectProtocol,
    Items,
    Leader,
    Led,
    RoundMemory,
    WorkerAssignment,
    WorkerMetadata,
    lead,
)
from tests.support.connect.group import shown

LEADER = Leader("w1", "http://w1", ConnectProtocol.SESSIONED)
TWO = Configuration(620, {"c1": 2, "c2": 1})


def _members(*offsets: int, version: int = 2) -> dict[str, bytes]:
    return {
        f"w{number}": WorkerMetadata(f"http://w{number}", offset, version=version).encode()
        for number, offset in enumerate(offsets, 1)
    }


def _lead(
    members: dict[str, bytes],
    configuration: Configuration = TWO,
    memory: RoundMemory | None = None,
    leader: Leader = LEADER,
    *,
    generation: int = 1,
    now_ms: int = 0,
) -> Led | None:
    return lead(
        members,
        configuration,
        memory or RoundMemory(),
        leader,
        now_ms=now_ms,
        completed=generation - 1,
        generation=generation,
    )


def _told(led: Led | None) -> dict[str, WorkerAssignment]:
    assert led is not None
    return {each: WorkerAssignment.decode(raw) for each, raw in led.assignments.items()}


@pytest.mark.parametrize("protocol", ConnectProtocol)
def test_everybody_is_told_in_the_version_of_the_group(protocol: ConnectProtocol) -> None:
    leader = replace(LEADER, protocol=protocol)
    led = _lead(_members(618, 620, version=protocol), leader=leader)
    told = _told(led)
    assert {each.version for each in told.values()} == {protocol}
    assert {(each.leader, each.leader_url) for each in told.values()} == {("w1", "http://w1")}
    assert {(each.config_offset, each.error, each.delay_ms) for each in told.values()} == {
        (620, 0, 0)
    }
    assert [shown(each.assigned or Items()) for each in told.values()] == [
        "c1 / c1[0] c2[0]",
        "c2 / c1[1]",
    ]
    assert led is not None
    assert {each: shown(items) for each, items in led.runs.items()} == {
        "w1": "c1 / c1[0] c2[0]",
        "w2": "c2 / c1[1]",
    }


def test_who_knows_more_than_it_needs_says_what_all_can_reach() -> None:
    told = _told(_lead(_members(618, 620), replace(TWO, offset=700)))
    assert {each.config_offset for each in told.values()} == {620}


def test_a_leader_that_is_behind_reads_on() -> None:
    behind = replace(TWO, offset=619)
    assert _lead(_members(618, 620), behind) is None
    told = _told(_lead(_members(618, 620), replace(TWO, offset=621, is_fresh=True)))
    assert {each.config_offset for each in told.values()} == {621}


def test_when_it_cannot_read_on_all_are_told() -> None:
    memory = RoundMemory(generation=7)
    led = _lead(_members(618, 620), replace(TWO, offset=619, is_fresh=True), memory)
    assert led is not None
    assert (led.error, led.memory) == (CONFIG_MISMATCH, memory)
    for each in _told(led).values():
        assert (each.error, each.config_offset) == (CONFIG_MISMATCH, 620)
        assert (each.assigned, each.revoked) == (Items(), Items())


def test_what_workers_run_and_what_they_are_to_stop() -> None:
    runs = Items(("c1", "c2"), tuple(ConnectorTaskId(*each) for each in (("c1", 0), ("c1", 1))))
    first = _lead(_members(620))
    assert first is not None
    members = _members(620, 620)
    allocation = WorkerAssignment("w1", "http://w1", 620, runs)
    members["w1"] = WorkerMetadata("http://w1", 620, allocation).encode()
    configuration = replace(TWO, connectors={"c1": 2, "c2": 0})
    told = _told(_lead(members, configuration, first.memory, generation=2))
    assert [shown(each.assigned or Items()) for each in told.values()] == ["- / -", "- / -"]
    assert [shown(each.revoked or Items()) for each in told.values()] == ["c1 / c1[0]", "- / -"]


def test_a_worker_that_left_makes_all_wait() -> None:
    first = _lead(_members(620, 620))
    assert first is not None
    allocation = WorkerAssignment(assigned=first.runs["w1"])
    members = {"w1": WorkerMetadata("http://w1", 620, allocation).encode()}
    told = _told(_lead(members, memory=first.memory, generation=2))
    assert told["w1"].delay_ms == 300_000


@pytest.mark.parametrize("bad", [b"", b"\xff\xff", b"\0\2rubbish"])
def test_a_member_that_nobody_can_read_gets_nothing(bad: bytes) -> None:
    led = _lead(_members(620) | {"w2": bad})
    assert led is not None
    assert list(led.unreadable) == ["w2"]
    told = _told(led)
    assert [shown(each.assigned or Items()) for each in told.values()] == [
        "c1 c2 / c1[0,1] c2[0]",
        "- / -",
    ]
    assert _told(_lead({"w1": bad}))["w1"].assigned == Items()
