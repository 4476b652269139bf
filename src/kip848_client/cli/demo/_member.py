"""One member of the demo's group, in a process of its own so that it can really be killed.

It reports ``{"state": .., "epoch": .., "partitions": [..]}`` when its membership has changed, and
``{"records": {"0": [17, 18]}}`` for the offsets it received, by partition.
"""

from __future__ import annotations

import argparse
import asyncio
from contextlib import AsyncExitStack
from typing import Any

from kip848_client import Consumer
from kip848_client.cli._demo._process import report, run_child, stop_requested
from kip848_client.history.recording import recording

__all__ = ["main"]


class _Reporter:
    """Reports what changed since the last report."""

    def __init__(self, consumer: Consumer[bytes | None, bytes | None]) -> None:
        self._consumer = consumer
        self._last: dict[str, Any] = {}

    def state(self) -> None:
        view = self._consumer.member
        if view is None:
            return
        now = {
            "member": view.member_id,
            "state": view.state.name,
            "epoch": view.member_epoch if view.member_epoch > 0 else None,
            "partitions": sorted(tp.partition for tp in view.assigned),
        }
        if now != self._last:
            self._last = now
            report(now)


async def _consume(consumer: Consumer[bytes | None, bytes | None], reporter: _Reporter) -> None:
    while True:
        batches = await consumer.getmany(timeout_ms=100)
        records = {tp.partition: [record.offset for record in got] for tp, got in batches.items()}
        if records:
            report({"records": records})
        reporter.state()


async def _run(options: argparse.Namespace) -> None:
    consumer = Consumer(
        options.topic,
        bootstrap_servers=options.bootstrap,
        group_id=options.group,
        client_id=f"demo-{options.name}",
        auto_offset_reset="earliest",
        auto_commit_interval_ms=500,
    )
    async with AsyncExitStack() as stack:
        if options.events is not None:
            await stack.enter_async_context(recording(consumer, options.events))
        await stack.enter_async_context(consumer)
        consuming = asyncio.ensure_future(_consume(consumer, _Reporter(consumer)))
        leaving = asyncio.ensure_future(stop_requested())
        done, _ = await asyncio.wait({consuming, leaving}, return_when=asyncio.FIRST_COMPLETED)
        consuming.cancel()
        if consuming in done:
            consuming.result()


def main(argv: list[str] | None = None) -> int:
    """Run one member until the demo asks it to stop; the exit code is 1 if it failed."""
    parser = argparse.ArgumentParser(prog="python -m kip848_client.cli.demo")
    for name in ("name", "bootstrap", "topic", "group"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--events")
    return run_child(_run, parser, argv)
