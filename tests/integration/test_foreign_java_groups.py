"""Two of Java's verifiable consumers in one group: they share, are described while they work, and
the one that stays takes over when the other leaves."""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, Final

import anyio.to_thread
import pytest

from mock_coordinator import MockBroker
from tests.support.kafka_tools import (
    CONSUMER_GROUPS,
    VERIFIABLE_CONSUMER,
    run_tool,
    tool_command,
)
from tests.support.pytest_kafka import skip_without_kafka

pytestmark = [
    pytest.mark.foreign,
    pytest.mark.real_kafka,
    pytest.mark.asyncio,
    pytest.mark.timeout(150),
]

FAST = {
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.assignment.interval.ms": "0",
    "group.initial.rebalance.delay.ms": "0",
}
PARTITIONS: Final = 4
RECORDS: Final = 50
"""In each partition."""
PATIENCE_S: Final = 40.0


class Worker:
    """A verifiable consumer in a process of its own, which tells a JSON event a line."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._process = process
        self._log = log

    def events(self, name: str) -> list[dict[str, Any]]:
        """What it has told so far of one kind."""
        with self._log.open() as lines:
            told = [json.loads(line) for line in lines if line.startswith("{") and "}\n" in line]
        return [event for event in told if event["name"] == name]

    def finished(self) -> set[int]:
        """The partitions of which it has committed all records."""
        commits = [event for event in self.events("offsets_committed") if event["success"]]
        offsets = [offset for event in commits for offset in event["offsets"]]
        return {offset["partition"] for offset in offsets if offset["offset"] == RECORDS}

    def owned(self) -> int:
        """How many partitions it has."""
        given = sum(len(event["partitions"]) for event in self.events("partitions_assigned"))
        taken = sum(len(event["partitions"]) for event in self.events("partitions_revoked"))
        return given - taken

    def leave(self) -> None:
        """Let it leave its group and end."""
        self._process.terminate()
        self._process.wait(PATIENCE_S)


@contextlib.contextmanager
def working(bootstrap: str, protocol: str, log: Path) -> Generator[Worker]:
    with skip_without_kafka():
        command = tool_command(
            VERIFIABLE_CONSUMER,
            *("--bootstrap-server", bootstrap, "--topic", "orders", "--group-id", "g"),
            *("--group-protocol", protocol, "--reset-policy", "earliest"),
        )
    with log.open("w") as out, subprocess.Popen(command, stdout=out, text=True) as process:
        try:
            yield Worker(process, log)
        finally:
            process.kill()


def until(condition: Callable[[], bool]) -> None:
    give_up = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < give_up, "the group did not get there in time"
        time.sleep(0.1)


def rows(described: str) -> list[list[str]]:
    """The lines of a table that are about group ``g``, in words."""
    return [line.split() for line in described.splitlines() if line.startswith("g ")]


def two_lives(bootstrap: str, protocol: str, folder: Path) -> dict[str, Any]:
    """The story; returns what Java's tool showed of the group while two worked and after that."""
    at = ("--bootstrap-server", bootstrap)
    seen: dict[str, Any] = {}

    def described(*what: str) -> list[list[str]]:
        return rows(run_tool(CONSUMER_GROUPS, *at, "--describe", "--group", "g", *what))

    with (
        working(bootstrap, protocol, folder / "one") as one,
        working(bootstrap, protocol, folder / "two") as two,
    ):
        until(lambda: one.owned() == two.owned() == PARTITIONS // 2)
        until(lambda: len(one.finished() | two.finished()) == PARTITIONS)
        seen["members"] = described("--members")
        seen["state"] = described("--state")
        seen["offsets"] = described("--offsets")
        one.leave()
        until(lambda: two.owned() == PARTITIONS)
        seen["left"] = described("--members")
        two.leave()
        seen["told the end"] = [len(worker.events("shutdown_complete")) for worker in (one, two)]
    return seen


@pytest.mark.parametrize(("profile", "protocol"), [("4.0", "classic"), ("4.4", "consumer")])
async def test_two_of_javas_consumers_share_and_take_over(
    profile: str, protocol: str, tmp_path: Path
) -> None:
    async with MockBroker({"orders": PARTITIONS}, profile=profile, config=FAST) as broker:
        for partition in range(PARTITIONS):
            broker.produce("orders", *[b"x"] * RECORDS, partition=partition)
        seen = await anyio.to_thread.run_sync(two_lives, broker.bootstrap, protocol, tmp_path)
        group = broker.snapshot("g")
        if protocol == "consumer":
            assert group is not None
            assert not group.members, "both have left"
    assert [row[4] for row in seen["members"]] == ["2", "2"]
    assert "Stable" in seen["state"][0]
    assert seen["state"][0][-1] == "2"
    # TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG
    assert [row[3:6] for row in seen["offsets"]] == [[str(RECORDS), str(RECORDS), "0"]] * PARTITIONS
    assert [row[4] for row in seen["left"]] == [str(PARTITIONS)]
    assert seen["told the end"] == [1, 1]
