"""Plays ``kip848 demo``: a broker, a producer, and members that join, leave, crash and come back.

Real brokers let a member wait five seconds between heartbeats, and a partition needs two of them to
change hands: the last step comes early, so that every member has its partitions before the end. On
a slow machine, where a process takes seconds to start, the script takes longer: no member leaves or
is killed before all that were started are in the group.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, TextIO

from kip848_client.admin import Admin, NewTopic
from kip848_client.cli._demo._demo import Action, Demo, Step, short_sessions
from kip848_client.cli._demo._demo import play as play_demo
from kip848_client.cli._demo._process import Process
from kip848_client.cli._demo._screen import Screen
from kip848_client.cli._output import put_prose
from kip848_client.cli.demo._display import Row, table, verdict_lines
from kip848_client.cli.demo.core._accounting import Accounting, DeliveryVerdict
from kip848_client.core.types import LEAVE_EPOCH
from kip848_client.core.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import ConfigError, Kip848Error
from kip848_client.history.recording import HistoryFile
from kip848_client.producer import Producer

__all__ = ["play"]

SCRIPT: Final = (
    Step("A", Action.START, "joins"),
    Step("B", Action.START, "joins", 0.2),
    Step("C", Action.START, "joins", 2.0),
    Step("B", Action.STOP, "leaves", 4.0),
    Step("A", Action.KILL, "is killed: it neither commits nor leaves the group", 5.5),
    Step("A", Action.START, "comes back", 7.5),
)
PRODUCES_ON_S: Final = 4.5
"""How long records are produced after the last step, one every few milliseconds."""

_JOINS_WITHIN_S: Final = 20.0
"""The script continues without a member that is not in the group by then."""
_PATIENCE_S: Final = 20.0
"""A missing record counts as lost when no record was delivered for this long."""
_PARTITIONS: Final = 6
_RECORD_EVERY_S: Final = 0.004


class _Member(Process[Row]):
    """A consumer. ``on_records`` gets a partition and the offsets delivered to the application."""

    def __init__(
        self,
        name: str,
        changed: Callable[[], None],
        on_records: Callable[[int, list[int]], None],
    ) -> None:
        super().__init__(name, "kip848_client.cli.demo", changed)
        self.member_id = ""
        self._on_records = on_records
        self._partitions: tuple[int, ...] = ()
        self._consumed = 0

    @property
    def row(self) -> Row:
        """The member as the screen shows it."""
        return Row(self.name, self.state, self.epoch, self._partitions, self._consumed)

    def ended(self, how: str) -> None:
        """The process is gone."""
        self._partitions = ()
        super().ended(how)

    def received(self, message: dict[str, Any]) -> None:
        """Handle records and a new assignment."""
        for partition, offsets in message.get("records", {}).items():
            self._consumed += len(offsets)
            self._on_records(int(partition), offsets)
        if "state" in message:
            self.member_id, self._partitions = message["member"], tuple(message["partitions"])


class _Demo(Demo[_Member, DeliveryVerdict]):
    def __init__(
        self, address: str, screen: Screen[Row], events: str | None, *, is_embedded: bool
    ) -> None:
        super().__init__(screen)
        mark = secrets.token_hex(4)
        self.topic, self.group = f"kip848-demo-{mark}", f"kip848-demo-{mark}"
        self._address = address
        self._is_embedded = is_embedded
        self._events = events
        self._accounting = Accounting(_PARTITIONS)
        self._delivered = asyncio.Event()
        self._produces = True

    def new_process(self, name: str) -> _Member:
        return _Member(name, self.changed.set, self._on_records)

    async def start_process(self, process: _Member) -> None:
        place = ("--bootstrap", self._address, "--topic", self.topic, "--group", self.group)
        recorded = () if self._events is None else ("--events", self._events)
        await process.start(*place, *recorded)

    def footer(self) -> str:
        accounting = self._accounting
        return (
            f"{self.at_s:4.1f} s   produced {len(accounting.produced)}   "
            f"delivered {accounting.delivered.total()}   outstanding {accounting.missing}"
        )

    async def script(self) -> DeliveryVerdict:
        producing = asyncio.create_task(self._produce())
        try:
            for step in SCRIPT:
                await asyncio.sleep(max(0.0, step.at_s - self.at_s))
                if step.action is not Action.START:
                    await self.settled(_JOINS_WITHIN_S)
                await self._remove_dead(step)
                await self.perform(step)
            await asyncio.sleep(PRODUCES_ON_S)
            self._produces = False
            await producing
            await self._drain()
            return self._accounting.verdict()
        finally:
            producing.cancel()
            await asyncio.gather(producing, return_exceptions=True)

    async def run(self) -> DeliveryVerdict:
        """Run the demo in a topic of its own, which is deleted after it; the outcome."""
        async with Admin(bootstrap_servers=self._address) as admin:
            await admin.create_topics([NewTopic(self.topic, _PARTITIONS, 1)])
            try:
                return await super().run()
            finally:
                await admin.delete_topics([self.topic])

    async def _remove_dead(self, step: Step) -> None:
        """On a real broker the session of a killed member lasts longer than the demo."""
        process = self.processes.get(step.process)
        if step.action is Action.START and process is not None and not self._is_embedded:
            async with _LeavingAdmin(bootstrap_servers=self._address) as admin:
                if await admin.remove_member(self.group, process.member_id):
                    self.news(f"{step.process}'s dead member is removed from the group")

    def _on_records(self, partition: int, offsets: list[int]) -> None:
        now_ms = int(self.at_s * 1000)
        for offset in offsets:
            self._accounting.consumed(partition, offset, now_ms)
        self._delivered.set()

    async def _drain(self) -> None:
        """Wait until every acknowledged record was delivered, or no more records come."""
        with suppress(TimeoutError):
            while self._accounting.missing:
                self._delivered.clear()
                await asyncio.wait_for(self._delivered.wait(), _PATIENCE_S)

    async def _produce(self) -> None:
        async with Producer(bootstrap_servers=self._address) as producer:
            waiting: set[asyncio.Task[None]] = set()
            number = 0
            while self._produces:
                number += 1
                task = asyncio.create_task(self._produce_one(producer, number))
                waiting.add(task)
                task.add_done_callback(waiting.discard)
                await asyncio.sleep(_RECORD_EVERY_S)
            await asyncio.gather(*waiting)

    async def _produce_one(self, producer: Producer[bytes, bytes], number: int) -> None:
        key = f"key-{number % 97}".encode()
        try:
            place = await producer.send_and_wait(self.topic, str(number).encode(), key)
        except Kip848Error:
            return  # never acknowledged, so it cannot be lost
        self._accounting.produced[place.partition, place.offset] = number


class _LeavingAdmin(Admin):
    async def remove_member(self, group: str, member_id: str) -> bool:
        """Make a dead member leave its group before its session expires: the coordinator does not
        check who sends its last heartbeat. Returns whether the member was still in the group."""
        described = await self.describe_groups([group])
        leave = ConsumerGroupHeartbeatRequest(
            group_id=group, member_id=member_id, member_epoch=LEAVE_EPOCH
        )
        asking, deadline_ms = self._begin(None)
        answer = await asking.to(described[group].coordinator.node_id, leave, deadline_ms)
        return bool(answer.error_code == ErrorCode.NONE)


@asynccontextmanager
async def _broker(bootstrap: str | None, events: str | None) -> AsyncGenerator[str]:
    """The address of the broker named, or of an embedded one on a free port of this machine."""
    if bootstrap is not None:
        yield bootstrap
        return
    from mock_coordinator import MockBroker

    async with MockBroker(config=short_sessions(1500, 300), events=events) as broker:
        yield broker.bootstrap


async def _play(bootstrap: str | None, events: str | None, out: TextIO) -> int:
    async with _broker(bootstrap, events) as address:
        with Screen(out, table) as screen:
            where = "the embedded coordinator" if bootstrap is None else "a real broker"
            where += f" at {address}"
            screen.news(0.0, f"on {where}: one group, {_PARTITIONS} partitions, about 20 seconds")
            demo = _Demo(address, screen, events, is_embedded=bootstrap is None)
            verdict = await demo.run()
    put_prose("", *verdict_lines(verdict))
    return 0 if verdict.good and verdict.produced else 1


def _check_writable(path: str) -> None:
    """Otherwise each member would report it. Raises ``ConfigError``."""
    try:
        HistoryFile(path).end()
    except OSError as err:
        raise ConfigError(f"--events {path}: {err.strerror or err}") from err


def play(options: argparse.Namespace) -> int:
    """Run the demo.

    Args:
        options: ``bootstrap`` is a broker's address or ``None``, ``events`` a file or ``None``.

    Returns:
        The exit code: 0 if no record was lost, 1 if one was, or if the demo could not start.

    Raises:
        ConfigError: ``bootstrap`` is not an address, or the file of events cannot be written.
    """
    if options.events is not None:
        _check_writable(options.events)
    return play_demo("demo", _play(options.bootstrap, options.events, sys.stdout))
