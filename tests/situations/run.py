"""The situations, played on one set of brokers: side by side, but for those that harm brokers."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Final, Protocol

from kip848_client import Admin
from tests.situations import moves, restarts, rights, slowness, topics
from tests.situations.diary import Verdict
from tests.situations.secured import Secured
from tests.situations.situation import Situation
from tests.torture.brokers import NODES, Brokers, mock_brokers, real_brokers

__all__ = [
    "BY_NAME",
    "CALM",
    "HARMFUL",
    "LONG",
    "OF_NAMES",
    "SERVERS",
    "play_all",
    "play_rights",
    "play_these",
    "running",
]

SERVERS: Final = ("mock", "4.4.0")
"""Those that tests play everything on; ``python -m tests.long`` adds all other releases."""
BY_NAME: Final = ("4.0.2",)
"""The releases that take offsets by the names of topics alone."""


class Play(Protocol):
    """A situation, and beside it what it needs of the brokers."""

    __name__: str

    def __call__(self, situation: Situation, /, *what: Any, **more: Any) -> Awaitable[Verdict]: ...


CALM: Final[tuple[Play, ...]] = (
    restarts.rolling_restart,
    restarts.static_restart,
    restarts.static_crash,
    restarts.another_instance_id,
    topics.partitions_are_added,
    topics.created_again,
    slowness.a_callback_that_is_slow,
    slowness.a_callback_that_is_too_slow,
    slowness.records_that_take_too_long,
)
"""In these brokers are left alone. They are played side by side."""

LONG: Final[Play] = topics.new_topics_for_a_pattern
"""Brokers match patterns anew each ten seconds: this goes on beside all others."""


HARMFUL: Final[tuple[Play, ...]] = (
    moves.brokers_are_restarted,
    moves.the_controller_is_restarted,
)
"""These harm brokers: one after the other, with nothing beside them."""


RIGHTS: Final[tuple[Play, ...]] = (rights.the_right_to_the_topic, rights.the_right_to_the_group)


def running(server: str) -> AbstractAsyncContextManager[Brokers]:
    """Three brokers for the length of a block. Raises what ``RealCluster`` raises."""
    return mock_brokers("4.4") if server == "mock" else real_brokers(server)


OF_NAMES: Final[tuple[Play, ...]] = (topics.created_again,)
"""What comes out differently where offsets are taken by the names of topics alone."""


async def play_these(server: str, brokers: Brokers, plays: tuple[Play, ...]) -> list[str]:
    """Play these, which leave brokers alone; else as ``play_all``."""
    async with Admin(bootstrap_servers=brokers.bootstrap) as admin:
        stage = Stage(brokers.bootstrap, admin, len(NODES), server in BY_NAME)
        return _told(await asyncio.gather(*(stage.play(each) for each in plays)))


async def play_all(
    server: str, brokers: Brokers, harmful: tuple[Play, ...] = HARMFUL[:1]
) -> list[str]:
    """Play all but those of rights, and of those that harm brokers these; returns what came of
    each. Raises an ``ExceptionGroup`` of what went wrong, in which every error names its
    situation."""
    async with Admin(bootstrap_servers=brokers.bootstrap) as admin:
        stage = Stage(brokers.bootstrap, admin, len(NODES), server in BY_NAME)
        long = asyncio.create_task(stage.play(LONG))
        calm = await asyncio.gather(*(stage.play(each) for each in CALM))
        return _told([*calm, await long, *[await stage.play(each, brokers) for each in harmful]])


async def play_rights(secured: Secured) -> list[str]:
    """Those of rights; else as ``play_all``."""
    async with Admin(bootstrap_servers=secured.bootstrap) as admin:
        stage = Stage(secured.bootstrap, admin, 1)
        return _told(await asyncio.gather(*(stage.play(each, secured) for each in RIGHTS)))


def _told(results: list[str | Exception]) -> list[str]:
    errors = [each for each in results if isinstance(each, Exception)]
    if errors:
        raise ExceptionGroup("what went wrong", errors)
    return [str(each) for each in results]


@dataclass(frozen=True, slots=True)
class Stage:
    """Where situations are played. Topics have so many ``replicas``."""

    bootstrap: str
    admin: Admin
    replicas: int
    by_name: bool = False

    async def play(self, play: Play, *what: Any) -> str | Exception:
        """Play one, with what it takes; returns what came of it."""
        name = play.__name__
        began = time.monotonic()
        unique = f"{name}-{uuid.uuid4().hex[:6]}"
        situation = Situation(
            self.bootstrap, self.admin, unique, self.replicas, by_name=self.by_name
        )
        try:
            verdict = await play(situation, *what)
            assert verdict.is_clean, verdict
        except Exception as err:  # noqa: BLE001 - others go on; all that went wrong is told
            err.add_note(f"in {unique}, of which there is:\n{situation.told()}")
            return err
        return f"{name}: {verdict} ({time.monotonic() - began:.1f} s)"
