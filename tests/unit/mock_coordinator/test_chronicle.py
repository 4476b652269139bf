"""What group coordinators tell of their groups, where it is asked for."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from kip848_client.core.wire.messages.connect_group import (
    ConnectGroupHeartbeatRequest,
    ConnectGroupHeartbeatRequestAssignor,
)
from kip848_client.core.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from kip848_client.core.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kip848_client.errors import ConfigError
from kip848_client.history.core import HistoryEvent
from kip848_client.history.recording import read_files
from mock_coordinator import MockBroker, VirtualClock

NOW = {"group.consumer.assignment.interval.ms": "0"}


class Told:
    """A broker that writes events, and members that are played by hand."""

    def __init__(self, folder: Path) -> None:
        self.clock = VirtualClock(1_000)
        self.path = folder / "events.jsonl"
        self.broker = MockBroker(
            {"t": 2}, listen=False, clock=self.clock, config=NOW, events=self.path
        )
        self.topic_id = bytes(self.broker.core.broker.catalog.topics["t"].topic_id)
        self.connection = self.broker.connect(client_id="me")

    def beat(self, member_id: str, epoch: int, owned: Iterable[int] | None = None) -> Any:
        rows = None
        if owned is not None:
            row = ConsumerGroupHeartbeatRequestTopicPartitions(
                topic_id=self.topic_id, partitions=tuple(owned)
            )
            rows = (row,) if row.partitions else ()
        joins = epoch == 0
        return self.connection.ask(
            ConsumerGroupHeartbeatRequest(
                group_id="g",
                member_id=member_id,
                member_epoch=epoch,
                rebalance_timeout_ms=10_000 if joins else -1,
                subscribed_topic_names=("t",) if joins else None,
                topic_partitions=() if joins else rows,
            ),
            1,
        )

    def commit(self, member_id: str, epoch: int) -> None:
        rows = tuple(
            OffsetCommitRequestPartition(partition_index=n, committed_offset=0) for n in (0, 1)
        )
        topics = (OffsetCommitRequestTopic(name="t", partitions=rows),)
        self.connection.ask(
            OffsetCommitRequest(
                group_id="g",
                generation_id_or_member_epoch=epoch,
                member_id=member_id,
                topics=topics,
            ),
            9,
        )

    def events(self) -> list[HistoryEvent]:
        """Since the last time."""
        found = read_files([self.path]).events
        self.path.write_bytes(b"")
        return found

    def lines(self) -> list[str]:
        """The same, in short."""
        return [
            " ".join(
                [
                    each.kind,
                    each.member_id or "-",
                    *([f"epoch {each.member_epoch}"] if each.member_epoch is not None else []),
                    *([f"group {each.group_epoch}"] if each.group_epoch is not None else []),
                    *(f"{tp.topic}-{tp.partition}" for tp in each.partitions),
                    *([f"({each.cause})"] if each.cause else []),
                ]
            )
            for each in self.events()
        ]


@pytest.fixture
def told(tmp_path: Path) -> Told:
    return Told(tmp_path)


def test_a_member_joins_beats_and_leaves(told: Told) -> None:
    epoch = told.beat("m", 0).member_epoch
    assert told.lines() == [
        f"group_epoch - group {epoch}",
        f"target - group {epoch}",
        f"joined m epoch {epoch}",
        f"heartbeat m epoch {epoch}",
        f"assigned m epoch {epoch} t-0 t-1",
    ]
    told.beat("m", epoch, owned=(0, 1))
    told.beat("m", epoch)
    assert told.lines() == [f"heartbeat m epoch {epoch}"] * 2
    told.beat("m", -1)
    assert told.lines()[-2:] == ["left m epoch -1", "revoked m t-0 t-1"]


def test_partitions_that_move_are_told_when_they_are_given_up_and_given(told: Told) -> None:
    first = told.beat("m", 0).member_epoch
    told.beat("m", first, owned=(0, 1))
    told.beat("n", 0)
    told.lines()
    (kept,) = told.beat("m", first).assignment.topic_partitions[0].partitions
    assert told.lines() == [f"heartbeat m epoch {first}"], "it may go on with what it gives up"
    epoch = told.beat("m", first, owned=(kept,)).member_epoch
    assert told.lines() == [
        f"heartbeat m epoch {epoch}",
        f"revoked m epoch {epoch} t-{1 - kept}",
    ]
    told.beat("n", epoch)
    assert f"assigned n epoch {epoch} t-{1 - kept}" in told.lines()


def test_a_member_that_is_silent_is_told_to_be_put_out(told: Told) -> None:
    epoch = told.beat("m", 0).member_epoch
    told.lines()
    told.clock.advance(60_000)
    lines = told.lines()
    assert "fenced m (session timeout)" in lines
    assert "lost m t-0 t-1 (session timeout)" in lines
    told.beat("m", epoch)
    told.commit("m", epoch)
    assert told.lines() == [
        f"heartbeat_refused m epoch {epoch} (UNKNOWN_MEMBER_ID)",
        f"commit_refused m epoch {epoch} t-0 t-1 (UNKNOWN_MEMBER_ID)",
    ]


def test_commits_are_told_with_what_became_of_them(told: Told) -> None:
    epoch = told.beat("m", 0).member_epoch
    told.lines()
    told.commit("m", epoch)
    told.commit("m", epoch - 1)
    assert told.lines() == [
        f"committed m epoch {epoch} t-0 t-1",
        f"commit_refused m epoch {epoch - 1} t-0 t-1 (STALE_MEMBER_EPOCH)",
    ]


def test_a_broker_that_was_restarted_goes_on_telling(told: Told) -> None:
    epoch = told.beat("m", 0).member_epoch
    told.broker.restart()
    told.connection = told.broker.connect(client_id="me")
    told.lines()
    told.beat("m", epoch)
    (event,) = told.events()
    assert (event.kind, event.client_id, event.role) == ("heartbeat", "me", "coordinator")
    assert event.time_ms == told.clock()


def test_connect_workers_are_told_of_too(told: Told) -> None:
    offer = ConnectGroupHeartbeatRequestAssignor(name="a", maximum_version=1, version=1)
    answer = told.connection.ask(
        ConnectGroupHeartbeatRequest(
            group_id="w",
            member_id="worker",
            member_epoch=0,
            rebalance_timeout_ms=10_000,
            client_assignors=(offer,),
            owned=(),
        ),
        0,
    )
    assert not answer.error_code, answer.error_message
    kinds = [(each.kind, each.member_id) for each in told.events()]
    assert ("joined", "worker") in kinds


def test_a_file_that_cannot_be_opened_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"events = .*missing.*No such file"):
        MockBroker(listen=False, events=tmp_path / "missing" / "events.jsonl")
    with pytest.raises(ConfigError, match="events = 5: expected the path of a file"):
        MockBroker(listen=False, events=5)  # type: ignore[arg-type]  # what users may do
