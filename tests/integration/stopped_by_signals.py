"""A program with a processor, which a test ends by signals.

``python -m tests.integration.stopped_by_signals BOOTSTRAP HOW`` copies ``in`` to ``out``. It prints
a line for each record that the function has, and ``returned`` when ``run`` has returned. ``HOW`` is
``stop_on``, ``request_stop`` (in a handler of the loop), ``raw`` (in a handler of the module
``signal``), ``thread`` or ``function``. The value ``slow`` takes until the stop was asked for,
``stuck`` prints ``stopping`` then, and never returns.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from typing import Any

from kip848_client import Consumer, ExactlyOnceProcessor, Producer, ProducerRecord, Record

__all__: list[str] = []


def _say(text: str) -> None:
    print(text, flush=True)


async def main(bootstrap: str, how: str) -> None:
    """See the module."""

    async def function(record: Record[Any, Any]) -> ProducerRecord:
        _say(record.value.decode())
        if record.value in (b"slow", b"stuck"):
            while not processor._is_stop_requested:  # noqa: ASYNC110 - nothing signals it
                await asyncio.sleep(0.01)
        if record.value == b"stuck":
            _say("stopping")
            await asyncio.Event().wait()
        if record.value == b"last" and how == "function":
            processor.request_stop()
        return ProducerRecord("out", record.value)

    processor = ExactlyOnceProcessor(
        "in",
        function,
        consumer=Consumer(
            bootstrap_servers=bootstrap,
            group_id="g",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level="read_committed",
        ),
        producer=Producer(bootstrap_servers=bootstrap, transactional_id="t", linger_ms=0),
    )
    stop_on: tuple[signal.Signals, ...] = ()
    if how == "stop_on":
        stop_on = (signal.SIGTERM, signal.SIGINT)
    elif how == "request_stop":
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, processor.request_stop)
    elif how == "raw":
        signal.signal(signal.SIGTERM, lambda *_: processor.request_stop())
    elif how == "thread":
        threading.Thread(target=_wait_and, args=(processor.request_stop,), daemon=True).start()
    async with processor:
        await processor.run(stop_on=stop_on)
        _say("returned")
    _say(f"handlers: {signal.getsignal(signal.SIGTERM) is signal.SIG_DFL}")


def _wait_and(call: Any) -> None:
    sys.stdin.readline()
    call()


if __name__ == "__main__":
    # a shell that runs the tests in the background has SIGINT ignored, also in its children
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        asyncio.run(main(*sys.argv[1:]))
    except KeyboardInterrupt:
        _say("interrupted")
        os._exit(3)
