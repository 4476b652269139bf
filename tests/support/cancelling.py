"""Cancel a task at its n-th wait, for every n: what it leaves behind must be in order each time."""

from __future__ import annotations

import asyncio
import types
from collections.abc import Callable, Coroutine, Generator
from enum import Enum
from typing import Any

__all__ = ["Moment", "cancelled_at"]

_PATIENCE_S = 20.0


class Moment(Enum):
    """When the cancellation comes."""

    WAITING = "while it waits"
    DONE = "when what it waits for is done, before it has heard of that"
    TWICE = "while it waits, and again in the next round of the loop"


async def cancelled_at(
    number: int, moment: Moment, make: Callable[[], Coroutine[Any, Any, Any]]
) -> asyncio.Task[Any] | None:
    """Run what ``make`` makes in a task that is cancelled at its wait of this number, counted from
    1. ``None`` if it does not wait so often: it has ended by itself then. Raises ``TimeoutError``
    when it does not end although it was cancelled."""
    loop = asyncio.get_running_loop()
    waits = 0

    def cancel() -> None:
        task.cancel()

    def note(awaited: Any) -> None:
        nonlocal waits
        waits += 1
        if waits != number:
            return
        if moment is Moment.DONE and isinstance(awaited, asyncio.Future):
            awaited.add_done_callback(lambda _: cancel())
            return
        loop.call_soon(cancel)
        if moment is Moment.TWICE:
            loop.call_soon(loop.call_soon, cancel)

    async def run() -> Any:
        return await _watched(make(), note)

    task = loop.create_task(run())
    done, _ = await asyncio.wait([task], timeout=_PATIENCE_S)
    if not done:
        task.cancel()
        raise TimeoutError(f"cancelled at wait {number}, {moment.value}: it does not end")
    if waits < number:
        await task  # raises what it has raised
        return None
    return task


@types.coroutine
def _watched(
    coroutine: Coroutine[Any, Any, Any], note: Callable[[Any], None]
) -> Generator[Any, Any, Any]:
    """Run a coroutine, and call ``note`` with everything that it waits for."""
    value: Any = None
    error: BaseException | None = None
    while True:
        try:
            awaited = coroutine.send(value) if error is None else coroutine.throw(error)
        except StopIteration as end:
            return end.value
        note(awaited)
        value = error = None
        try:
            value = yield awaited
        except BaseException as err:  # noqa: BLE001 - it goes where it was going
            error = err
