"""What metrics cost the way of records: nanoseconds a record, off and on, and without them.

A record path reads slices of 100 records from memory, in the three ways that applications take:
``async for``, ``getone`` and ``getmany``. *Without* is the code with the places cut out where
metrics are recorded; *off* is a consumer that was given none, *on* one that was. The ways take
turns, so that what disturbs the machine disturbs all; each figure is processor time, and the least
of all rounds.
"""

from __future__ import annotations

import argparse
import asyncio
import inspect
import time
from collections.abc import Callable, Coroutine
from types import ModuleType
from typing import Any, Final

from benchmarks.timing import machine, say, table
from kip848_client.consumer import _poller, _record_path
from kip848_client.consumer._error_box import ErrorBox
from kip848_client.consumer._poller import Poller
from kip848_client.consumer._record_path import RecordPath
from kip848_client.observe.core.metrics import Metrics
from kip848_client.observe.core.watching import FetchMeter, PollMeter
from kip848_client.records import Decoding
from tests.unit.consumer.fetched import A, PathHarness

__all__ = ["cut", "main"]

_SLICE: Final = 100
_WAYS: Final = ("async for", "getone", "getmany")
_KINDS: Final = ("without", "off", "on")
_BAR: Final = 1.02
"""Off, beside without."""


def main(arguments: list[str]) -> int:
    """Print the table; 1 if metrics cost anything when they are off."""
    parser = argparse.ArgumentParser(prog="benchmarks metrics", description=__doc__)
    parser.add_argument("--slices", type=int, default=300, help="of 100 records (%(default)s)")
    parser.add_argument("--rounds", type=int, default=15, help="of each way (%(default)s)")
    given = parser.parse_args(arguments)
    say(machine())
    rows: list[list[str]] = []
    fine = True
    for way in _WAYS:
        ns = asyncio.run(_measure(way, given.slices, given.rounds))
        off, on = (ns[kind] / ns["without"] for kind in ("off", "on"))
        fine = fine and off <= _BAR
        figures = [f"{ns[kind]:.1f}" for kind in _KINDS]
        rows.append([way, *figures, f"{off:.3f}", f"{on:.3f}"])
    say(table(["way", *(f"{kind}, ns" for kind in _KINDS), "off/without", "on/without"], rows))
    return 0 if fine else 1


async def _measure(way: str, slices: int, rounds: int) -> dict[str, float]:
    taken: dict[str, list[float]] = {kind: [] for kind in _KINDS}
    for number in range(rounds):
        for kind in (*_KINDS[number % 3 :], *_KINDS[: number % 3]):
            taken[kind].append(await _once(way, kind, slices))
    return {kind: min(each) for kind, each in taken.items()}


async def _once(way: str, kind: str, slices: int) -> float:
    """Nanoseconds a record."""
    harness, poller = _built(kind)
    values = [b"x" * 100] * _SLICE
    spent_ns = 0
    for number in range(slices):
        harness.grow(A, *values)
        if number:
            harness.serve()
        else:
            harness.begin(A)
        started_ns = time.thread_time_ns()
        await _READ[way](poller)
        spent_ns += time.thread_time_ns() - started_ns
    return spent_ns / slices / _SLICE


def _built(kind: str) -> tuple[PathHarness, Poller[Any, Any]]:
    """A path on a fetch core of its own, and who asks it for records."""
    harness = PathHarness()
    client = Metrics().open({}, lambda: int(time.monotonic() * 1000)) if kind == "on" else None
    fetches = None if client is None else FetchMeter(client, harness.core, committed=False)
    polls = None if client is None else PollMeter(client)
    handed_out = None if fetches is None else fetches.handed_out
    path, poller = (_CUT_PATH, _CUT_POLLER) if kind == "without" else (RecordPath, Poller)
    harness.path = path(
        harness.core, harness.post, harness.tracker, Decoding(), _nothing, handed_out
    )
    box = ErrorBox(_nothing)
    return harness, poller(harness.path, box, poll_interval_ms=300_000, meter=polls)


async def _iterate(poller: Poller[Any, Any]) -> None:
    left = _SLICE
    while left:
        if poller.take() is None:
            await poller.next()
        left -= 1


async def _get_one(poller: Poller[Any, Any]) -> None:
    for _ in range(_SLICE):
        await poller.one()


async def _get_many(poller: Poller[Any, Any]) -> None:
    await poller.many((), 0, None)


def _nothing() -> None:
    pass


def cut(module: ModuleType, name: str, *places: str) -> Any:
    """A class of a module as it would be without these lines."""
    source = inspect.getsource(module)
    for place in places:
        assert place in source, f"it has changed: {place}"
        source = source.replace(place, "")
    bare = ModuleType(module.__name__)
    exec(compile(source, module.__file__ or name, "exec"), bare.__dict__)
    return bare.__dict__[name]


_CUT_PATH: Final = cut(
    _record_path,
    "RecordPath",
    """        if self._handed_out is not None:
            self._handed_out(slice_)
""",
)
_CUT_POLLER: Final = cut(
    _poller,
    "Poller",
    """        if self._meter is not None:
            self._meter.polled()
""",
    """        if self._meter is not None:
            self._meter.waits()
""",
    """        if self._meter is not None and not self._waiting:
            self._meter.goes_on()
""",
)
_READ: Final[dict[str, Callable[[Poller[Any, Any]], Coroutine[Any, Any, None]]]] = {
    "async for": _iterate,
    "getone": _get_one,
    "getmany": _get_many,
}
