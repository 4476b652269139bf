"""Plays the demo: coordinator, workers, board, verdict."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from contextlib import suppress
from typing import Final, TextIO

from kip848_client.cli._output import put_error, put_prose
from kip848_client.cli._running import run_to_end
from kip848_client.cli._screen import Screen
from kip848_client.cli.connect._board import Row, footer, table, verdict_lines
from kip848_client.cli.connect._cast import Player
from kip848_client.cli.connect._story import (
    CONNECTORS,
    PATIENCE_S,
    PAUSE_S,
    STORY,
    Act,
    Scene,
)
from kip848_client.cli.connect.core._tally import Tally, Verdict
from kip848_client.core.connect import ITSELF, item_name
from kip848_client.errors import Kip848Error

__all__ = ["play"]

_GROUP: Final = "kip848-connect-demo"
_FRAME_S: Final = 0.2
_QUIET_S: Final = 0.5
"""A group is at rest when nothing of it has changed for so long."""
_SESSION_MS: Final = 1_500
_CONFIG: Final = {
    # a dead worker is noticed within the demo; Kafka's own lower bounds make that 45 seconds
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.session.timeout.ms": str(_SESSION_MS),
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "300",
    "group.initial.rebalance.delay.ms": "0",  # they come one after the other, as the story says
}
_ITEMS: Final = tuple(
    item_name(name, task) for name, count in CONNECTORS.items() for task in range(ITSELF, count)
)


class _Performance:
    """One run of the story."""

    def __init__(self, bootstrap: str, screen: Screen[Row], delay_ms: int) -> None:
        self._bootstrap = bootstrap
        self._screen = screen
        self._delay_ms = delay_ms
        self._start_s = time.monotonic()
        self._tally = Tally(_ITEMS)
        self._players: dict[str, Player] = {}
        self._stir = asyncio.Event()
        self._shown: object = None

    @property
    def at_s(self) -> float:
        """Seconds since the curtain rose."""
        return time.monotonic() - self._start_s

    async def run(self) -> Verdict:
        drawing = asyncio.get_running_loop().create_task(self._draw())
        try:
            for scene in STORY:
                if scene.waits and self._players:
                    await self._rest()
                    await asyncio.sleep(PAUSE_S)
                if self._error:
                    raise Kip848Error(self._error)
                await self._act(scene)
            await self._rest()
            return self._tally.verdict()
        finally:
            drawing.cancel()
            await asyncio.gather(*(player.leave() for player in self._players.values()))
            await asyncio.gather(drawing, return_exceptions=True)

    async def _rest(self) -> None:
        """Return when everything runs, at all who are there, or will not."""
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE_S + self._delay_ms / 1000):
                while not self._error and not await self._is_quiet():
                    await self._stir.wait()

    @property
    def _error(self) -> str:
        """Of a worker that has failed; empty if none has."""
        failed = (f"{each.name}: {each.error}" for each in self._players.values() if each.error)
        return next(failed, "")

    async def _is_quiet(self) -> bool:
        there = [player for player in self._players.values() if player.is_there]
        before = [player.row for player in there]
        if self._tally.nowhere or not all(player.is_at_rest for player in there):
            self._stir.clear()
            return False
        await asyncio.sleep(_QUIET_S)
        return before == [player.row for player in there]

    async def _act(self, scene: Scene) -> None:
        player = self._players.get(scene.worker)
        if player is None:
            player = self._players[scene.worker] = Player(scene.worker, self._tally, self._stir.set)
        self._screen.news(self.at_s, f"{scene.worker} {scene.act.value}")
        if scene.act in (Act.JOINS, Act.RETURNS):
            await player.enter(self._bootstrap, _GROUP, self._delay_ms, _SESSION_MS)
        elif scene.act is Act.LEAVES:
            await player.leave()
        else:
            await player.be_killed()

    async def _draw(self) -> None:
        while True:
            players = list(self._players.values())
            nowhere = self._tally.nowhere
            until_s = max((each.until_s for each in players), default=0.0)
            left_s = until_s - time.monotonic()
            self._tell_of_deferral(nowhere, left_s)
            below = footer(self.at_s, nowhere, left_s)
            self._screen.draw(self.at_s, [each.row for each in players], below)
            await asyncio.sleep(_FRAME_S)

    def _tell_of_deferral(self, nowhere: tuple[str, ...], left_s: float) -> None:
        deferred = nowhere if left_s > 0 else ()
        if deferred and deferred != self._shown:
            until = f"{self.at_s + left_s:.1f} s"
            self._screen.news(self.at_s, f"deferred until {until}: {' '.join(deferred)}")
        self._shown = deferred or None


async def _play(delay_ms: int, out: TextIO) -> int:
    from mock_coordinator import MockBroker

    async with MockBroker(config=_CONFIG) as broker:
        with Screen(out, table) as screen:
            screen.news(0.0, f"{len(CONNECTORS)} connectors, {len(_ITEMS)} items with their tasks")
            short = f"scheduled.rebalance.max.delay.ms is {delay_ms} here (Kafka Connect: 300000)"
            screen.news(0.0, short)
            performance = _Performance(broker.bootstrap, screen, delay_ms)
            verdict = await performance.run()
    put_prose("", *verdict_lines(verdict))
    return 0 if verdict.good else 1


def play(delay_ms: int) -> int:
    """Run the demo; exit code 0 when every item runs once and none ever ran twice, else 1."""
    # a retry that succeeds is no news for the audience of a demo
    logging.getLogger("aiokafka").setLevel(logging.ERROR)
    try:
        return run_to_end(_play(delay_ms, sys.stdout))
    except Kip848Error as err:
        put_error(f"kip848 connect demo: {err}")
        return 1
    except KeyboardInterrupt:
        return 130
