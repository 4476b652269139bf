"""Who reads along in worlds full of faults: what events and metrics tell is what the cores did."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any
from weakref import WeakKeyDictionary

import pytest

from kip848_client.core.group import GroupCore, Input, ListenerReturned, Output
from kip848_client.core.member import MemberState
from kip848_client.core.types import TopicPartition
from kip848_client.observe.core.metrics import Metrics
from kip848_client.observe.core.watching import (
    Chronicle,
    GroupMeter,
    MemberEpochChanged,
    MemberFenced,
    PartitionsAssigned,
    PartitionsLost,
    PartitionsRevoked,
    StateChanged,
)
from mock_coordinator.sim import draw_options, simulate


class Reader:
    """Follows one core, and compares what it is told with what the core shows."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.metrics = Metrics()
        self.chronicle = Chronicle(0)
        self.meter = GroupMeter(self.metrics.open({}, lambda: self.now_ms))
        self.told: set[TopicPartition] = set()
        self.given_up: frozenset[TopicPartition] = frozenset()
        """By the listener's newest call; one that failed may have given nothing up."""
        self.epoch = 0
        self.state = MemberState.UNSUBSCRIBED
        self.counts: Counter[str] = Counter()

    def read(
        self, core: GroupCore, now_ms: int, event: Input, commands: tuple[Output, ...]
    ) -> None:
        self.now_ms = max(self.now_ms, now_ms)
        if isinstance(event, ListenerReturned) and event.failed:
            self.told |= self.given_up & core.assigned_ids.keys()
        self.meter.on_step(self.now_ms, event, commands)
        for each in self.chronicle.of(self.now_ms, event, commands):
            self.counts[type(each).__name__] += 1
            match each:
                case StateChanged():
                    assert each.old is self.state
                    self.state = each.new
                case MemberEpochChanged():
                    assert each.old_epoch == self.epoch != each.member_epoch
                    self.epoch = each.member_epoch
                case MemberFenced():
                    assert each.member_epoch in (self.epoch, 0)
                case PartitionsAssigned():
                    self.told |= set(each.partitions)
                    self.given_up = frozenset()
                case PartitionsRevoked() | PartitionsLost():
                    self.given_up = frozenset(each.partitions)
                    assert self.given_up <= self.told, "it was never told"
                    self.told -= self.given_up
                case _:
                    pass
        assert self.state is core.member.state
        assert self.epoch == (core.member.commit_epoch or 0)
        if core.listener_is_idle and self.state is MemberState.STABLE:
            assert self.told == set(core.assigned_ids)

    def finish(self) -> None:
        value = self.metrics.value
        assert value("fenced-total") == self.counts["MemberFenced"]
        assert value("stale-commit-total") == self.counts["StaleCommit"]
        rebalances = value("rebalance-total") + value("failed-rebalance-total")
        assert rebalances <= self.counts["StateChanged"]
        for sample in self.metrics.samples():
            assert math.isnan(sample.value) or sample.value >= 0, sample


@pytest.mark.everything("it plays twenty worlds")
@pytest.mark.timeout(240)
def test_events_and_metrics_are_what_the_cores_did(monkeypatch: pytest.MonkeyPatch) -> None:
    readers: WeakKeyDictionary[GroupCore, Reader] = WeakKeyDictionary()
    seen: list[Reader] = []
    step = GroupCore.step

    def watched(core: GroupCore, now_ms: int, event: Any) -> tuple[Output, ...]:
        commands = step(core, now_ms, event)
        if core not in readers:
            readers[core] = Reader()
            seen.append(readers[core])
        readers[core].read(core, now_ms, event, commands)
        return commands

    monkeypatch.setattr(GroupCore, "step", watched)
    for seed in range(20):
        simulate(draw_options(seed))
    for reader in seen:
        reader.finish()
    told = sum((reader.counts for reader in seen), Counter[str]())
    assert told["MemberFenced"] > 20
    assert told["StaleCommit"] > 0
    assert told["PartitionsLost"] > 20
    assert told["CoordinatorUnreachable"] > 0
    assert told["ApplicationStalled"] > 0
