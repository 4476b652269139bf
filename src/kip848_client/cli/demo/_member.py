"""One member of the demo's group, in a process of its own so that it can really be killed.

It consumes, and says on standard output, one JSON object a line, what it saw: ``{"state": ..,
"epoch": .., "partitions": [..]}`` when its membership changed, ``{"records": {"0": [17, 18]}}``
for what it was handed. It leaves the group when its standard input ends.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
from contextlib import AsyncExitStack
from typing import Any

from kip848_client import Consumer, Kip848Error
from kip848_client.cli._children import farewell, say
from kip848_client.history.recording import recording

__all__ = ["main"]


class _Reporter:
    """Says what changed since the last time."""

    def __init__(self, consumer: Consumer[bytes | None, bytes | None]) -> None:
        self._consumer = consumer
        self._said: dict[str, Any] = {}

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
        if now != self._said:
            self._said = now
            say(now)


async def _consume(consumer: Consumer[bytes | None, bytes | None], reporter: _Reporter) -> None:
    while True:
        batches = await consumer.getmany(timeout_ms=100)
        records = {tp.partition: [record.offset for record in got] for tp, got in batches.items()}
        if records:
            say({"records": records})
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
        leaving = asyncio.ensure_future(farewell())
        done, _ = await asyncio.wait({consuming, leaving}, return_when=asyncio.FIRST_COMPLETED)
        consuming.cancel()
        if consuming in done:
            consuming.result()


def main(argv: list[str] | None = None) -> int:
    """Run one member until standard input ends; exit code 1 when it failed."""
    parser = argparse.ArgumentParser(prog="python -m kip848_client.cli.demo")
    for name in ("name", "bootstrap", "topic", "group"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--events")
    logging.getLogger("aiokafka").setLevel(logging.ERROR)
    try:
        asyncio.run(_run(parser.parse_args(argv)))
    except Kip848Error as err:
        say({"error": str(err)})
        return 1
    return 0
