"""One worker of the demo's group, in a process of its own so that it can really be killed.

It reports which items it starts and stops, and when: ``{"at": .., "started": [..]}``. All processes
share the machine's monotonic clock.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from typing import Any, Final

from kip848_client.cli._demo._process import report, run_child, stop_requested
from kip848_client.cli.connect._script import CONNECTORS
from kip848_client.connect import Worker
from kip848_client.connect.core import AssignedItem
from kip848_client.core.connect import IncrementalCooperativeAssignor

__all__ = ["main"]

_CHECK_S: Final = 0.1


class _Items:
    """Runs nothing, and reports what it would run."""

    async def on_assigned(self, items: tuple[AssignedItem, ...]) -> None:
        _report("started", items)

    async def on_revoked(self, items: tuple[AssignedItem, ...]) -> None:
        _report("stopped", items)

    async def on_lost(self, items: tuple[AssignedItem, ...]) -> None:
        _report("stopped", items)


def _report(what: str, items: tuple[AssignedItem, ...]) -> None:
    report({"at": time.monotonic(), what: [str(item) for item in items]})


async def _report_state(worker: Worker) -> None:
    last: dict[str, Any] = {}
    while True:
        delay_ms = worker.remaining_delay_ms
        now = {
            "state": worker.state.name,
            "epoch": worker.generation,
            "until": time.monotonic() + delay_ms / 1000 if delay_ms else 0.0,
        }
        if delay_ms or now != last:
            last = now
            report(now)
        await asyncio.sleep(_CHECK_S)


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
        reporting = asyncio.ensure_future(_report_state(worker))
        stopping = asyncio.ensure_future(stop_requested())
        try:
            done, _ = await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if running in done:
                running.result()
        finally:
            for task in (running, reporting, stopping):
                task.cancel()


def main(argv: list[str] | None = None) -> int:
    """Run one worker until the demo asks it to stop; the exit code is 1 if it failed."""
    parser = argparse.ArgumentParser(prog="python -m kip848_client.cli.connect")
    for name in ("name", "bootstrap", "group"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("delay-ms", "session-timeout-ms"):
        parser.add_argument(f"--{name}", required=True, type=int)
    return run_child(_run, parser, argv)
