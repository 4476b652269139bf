"""One worker of the demo's group, in a process of its own so that it can really be killed.

It says what it starts and stops, and at which moment: ``{"at": .., "started": [..]}``. The clock is
the machine's, which all processes share. It leaves the group when its standard input ends.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import time
from typing import Any

from kip848_client.cli._children import farewell, say
from kip848_client.cli.connect._story import CONNECTORS
from kip848_client.connect import Worker
from kip848_client.connect.core import AssignedItem
from kip848_client.core.connect import IncrementalCooperativeAssignor
from kip848_client.errors import Kip848Error

__all__ = ["main"]

_LOOK_S = 0.1


class _Items:
    """Runs nothing; says what it would."""

    async def on_assigned(self, items: tuple[AssignedItem, ...]) -> None:
        _tell("started", items)

    async def on_revoked(self, items: tuple[AssignedItem, ...]) -> None:
        _tell("stopped", items)

    async def on_lost(self, items: tuple[AssignedItem, ...]) -> None:
        _tell("stopped", items)


def _tell(what: str, items: tuple[AssignedItem, ...]) -> None:
    say({"at": time.monotonic(), what: [str(item) for item in items]})


async def _say_state(worker: Worker) -> None:
    said: dict[str, Any] = {}
    while True:
        delay_ms = worker.remaining_delay_ms
        now = {
            "state": worker.state.name,
            "generation": worker.generation,
            "until": time.monotonic() + delay_ms / 1000 if delay_ms else 0.0,
        }
        if delay_ms or now != said:
            said = now
            say(now)
        await asyncio.sleep(_LOOK_S)


async def _run(options: argparse.Namespace) -> None:
    worker = Worker(
        CONNECTORS,
        _Items(),
        bootstrap_servers=options.bootstrap,
        group_id=options.group,
        client_id=f"demo-{options.name}",
        rest_advertised_url=f"http://{options.name}:8083/",
        assignors=(
            IncrementalCooperativeAssignor(scheduled_rebalance_max_delay_ms=options.delay_ms),
        ),
        session_timeout_ms=options.session_timeout_ms,
        task_shutdown_graceful_timeout_ms=options.session_timeout_ms // 3,
    )
    async with worker:
        running = asyncio.ensure_future(worker.run())
        telling = asyncio.ensure_future(_say_state(worker))
        leaving = asyncio.ensure_future(farewell())
        try:
            done, _ = await asyncio.wait({running, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if running in done:
                running.result()
        finally:
            for task in (running, telling, leaving):
                task.cancel()


def main(argv: list[str] | None = None) -> int:
    """Run one worker until standard input ends; exit code 1 when it failed."""
    parser = argparse.ArgumentParser(prog="python -m kip848_client.cli.connect")
    for name in ("name", "bootstrap", "group"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("delay-ms", "session-timeout-ms"):
        parser.add_argument(f"--{name}", required=True, type=int)
    logging.getLogger("aiokafka").setLevel(logging.ERROR)
    try:
        asyncio.run(_run(parser.parse_args(argv)))
    except Kip848Error as err:
        say({"error": str(err)})
        return 1
    return 0
