"""Plays the demo: stage, producer, members, board, verdict."""

from __future__ import annotations

import argparse
import asyncio
import logging
import secrets
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Final, TextIO

from kip848_client.cli._output import put_error, put_prose
from kip848_client.cli._running import run_to_end
from kip848_client.cli._screen import Screen
from kip848_client.cli.demo._admin import Admin
from kip848_client.cli.demo._board import Row, table, verdict_lines
from kip848_client.cli.demo._cast import Player
from kip848_client.cli.demo._story import (
    JOINS_WITHIN_S,
    PATIENCE_S,
    PRODUCES_ON_S,
    STORY,
    Act,
    Scene,
)
from kip848_client.cli.demo.core._tally import Tally, Verdict
from kip848_client.errors import ConfigError, Kip848Error
from kip848_client.history.recording import HistoryFile
from kip848_client.producer import Producer

__all__ = ["play"]

_PARTITIONS: Final = 6
_RECORD_EVERY_S: Final = 0.004
_FRAME_S: Final = 0.2
_EMBEDDED_CONFIG: Final = {
    # a dead member is noticed within the demo; Kafka's own lower bounds make that 45 seconds
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": "1500",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
}


@asynccontextmanager
async def _stage(bootstrap: str | None, events: str | None) -> AsyncGenerator[str, None]:
    """A broker: the one named, or our own on a free port of this machine."""
    if bootstrap is not None:
        yield bootstrap
        return
    from mock_coordinator import MockBroker

    async with MockBroker(config=_EMBEDDED_CONFIG, events=events) as broker:
        yield broker.bootstrap


class _Performance:
    """One run of the story."""

    def __init__(
        self, bootstrap: str, screen: Screen[Row], *, embedded: bool, events: str | None
    ) -> None:
        mark = secrets.token_hex(4)
        self.topic, self.group = f"kip848-demo-{mark}", f"kip848-demo-{mark}"
        self._bootstrap = bootstrap
        self._screen = screen
        self._embedded = embedded
        self._events = events
        self._loop = asyncio.get_running_loop()
        self._start_s = self._loop.time()
        self._tally = Tally(_PARTITIONS)
        self._players: dict[str, Player] = {}
        self._news = asyncio.Event()
        self._produces = True

    @property
    def at_s(self) -> float:
        """Seconds since the curtain rose."""
        return self._loop.time() - self._start_s

    async def run(self) -> Verdict:
        self._start_s = self._loop.time()
        drawing = self._loop.create_task(self._draw())
        producing = self._loop.create_task(self._produce())
        try:
            for scene in STORY:
                await asyncio.sleep(max(0.0, scene.at_s - self.at_s))
                await self._act(scene)
            await asyncio.sleep(PRODUCES_ON_S)
            self._produces = False
            await producing
            await self._drain()
        finally:
            drawing.cancel()
            producing.cancel()
            await asyncio.gather(*(player.leave() for player in self._players.values()))
            await asyncio.gather(drawing, producing, return_exceptions=True)
        return self._tally.verdict()

    async def _drain(self) -> None:
        """Wait until everything acknowledged was handed out, or nothing comes any more."""
        with suppress(TimeoutError):
            while self._tally.outstanding:
                self._news.clear()
                await asyncio.wait_for(self._news.wait(), PATIENCE_S)

    async def _act(self, scene: Scene) -> None:
        player = self._players.setdefault(scene.member, Player(scene.member, self._handed_out))
        if scene.act in (Act.LEAVES, Act.CRASHES):
            await asyncio.gather(*(each.joined(JOINS_WITHIN_S) for each in self._players.values()))
        if scene.act is Act.RETURNS and not self._embedded and player.member_id:
            async with Admin(self._bootstrap) as admin:
                if await admin.bury(self.group, player.member_id):
                    self._screen.news(self.at_s, f"{scene.member}'s dead member is taken out")
        self._screen.news(self.at_s, f"{scene.member} {scene.act.value}")
        if scene.act in (Act.JOINS, Act.RETURNS):
            await player.enter(self._bootstrap, self.topic, self.group, self._events)
        elif scene.act is Act.LEAVES:
            await player.leave()
        else:
            await player.crash()

    def _handed_out(self, partition: int, offsets: list[int]) -> None:
        now_ms = int(self.at_s * 1000)
        for offset in offsets:
            self._tally.consumed(partition, offset, now_ms)
        self._news.set()

    async def _produce(self) -> None:
        async with Producer(bootstrap_servers=self._bootstrap) as producer:
            waiting: set[asyncio.Task[None]] = set()
            number = 0
            while self._produces:
                number += 1
                task = self._loop.create_task(self._produce_one(producer, number))
                waiting.add(task)
                task.add_done_callback(waiting.discard)
                await asyncio.sleep(_RECORD_EVERY_S)
            await asyncio.gather(*waiting)

    async def _produce_one(self, producer: Producer[bytes, bytes], number: int) -> None:
        key = f"key-{number % 97}".encode()
        try:
            place = await producer.send_and_wait(self.topic, str(number).encode(), key)
        except Kip848Error:
            return  # never acknowledged, so it was never promised
        self._tally.produced(place.partition, place.offset)

    async def _draw(self) -> None:
        while True:
            books = self._tally
            footer = (
                f"{self.at_s:4.1f} s   produced {books.acknowledged}   "
                f"handed out {books.deliveries}   outstanding {books.outstanding}"
            )
            self._screen.draw(self.at_s, [each.row for each in self._players.values()], footer)
            await asyncio.sleep(_FRAME_S)


async def _play(bootstrap: str | None, events: str | None, out: TextIO) -> int:
    async with _stage(bootstrap, events) as where:
        with Screen(out, table) as screen:
            verdict = await _perform(where, screen, bootstrap, events)
    put_prose("", *verdict_lines(verdict))
    return 0 if verdict.good and verdict.produced else 1


async def _perform(
    where: str, screen: Screen[Row], bootstrap: str | None, events: str | None
) -> Verdict:
    who = "the embedded coordinator" if bootstrap is None else "a real broker"
    screen.news(0.0, f"on {who} at {where}: one group, {_PARTITIONS} partitions, about 20 seconds")
    performance = _Performance(where, screen, embedded=bootstrap is None, events=events)
    async with Admin(where) as admin:
        await admin.create_topic(performance.topic, _PARTITIONS)
    try:
        return await performance.run()
    finally:
        async with Admin(where) as admin:
            await admin.delete_topic(performance.topic)


def _check_writable(path: str) -> None:
    """Members would tell it one after the other. Raises ``ConfigError``."""
    try:
        HistoryFile(path).end()
    except OSError as err:
        raise ConfigError(f"--events {path}: {err.strerror or err}") from err


def play(options: argparse.Namespace) -> int:
    """Run the demo; exit code 0 when nothing was lost, 1 when something was, or could not start.
    Raises ``ConfigError`` for a file of events that cannot be written."""
    if options.events is not None:
        _check_writable(options.events)
    # a retry that succeeds is no news for the audience of a demo
    logging.getLogger("aiokafka").setLevel(logging.ERROR)
    try:
        return run_to_end(_play(options.bootstrap, options.events, sys.stdout))
    except Kip848Error as err:
        put_error(f"kip848 demo: {err}")
        return 1
    except KeyboardInterrupt:
        return 130
