"""The user's client-side assignors: asked what they say, run, and told of targets.

Nothing that an assignor does may hold up the consumer or end it. So a plain ``assign`` runs in a
thread of its own, not in a pool: a thread cannot be ended, and one that never ends must not keep
the next computation waiting, nor the interpreter from exiting. What is raised is logged.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from kip848_client._shown import shown, told
from kip848_client.client_assignors import (
    AssignorFailed,
    AssignorMetadata,
    ClientAssignor,
)
from kip848_client.group import AbandonComputation, AssignmentComputed, ComputeAssignment
from kip848_client.member import OfferedAssignor

__all__ = ["LocalAssignors"]

_log = logging.getLogger("kip848_client")

_INT8: Final = range(-128, 128)
_NO_FIELDS: Final[Mapping[str, object]] = MappingProxyType({})


class LocalAssignors:
    """``assignors`` are in order of preference; their names and versions were checked. ``fields``
    go with each line of the log."""

    def __init__(
        self, assignors: Sequence[ClientAssignor], fields: Mapping[str, object] = _NO_FIELDS
    ) -> None:
        self._fields = fields
        self._assignors: Final = {each.name: each for each in assignors}
        self._ranges: Final = {
            name: (each.minimum_version, each.maximum_version)
            for name, each in self._assignors.items()
        }
        self._offered: dict[str, OfferedAssignor] = {}
        self._silent: set[str] = set()
        """Whose metadata could not be had when they were asked last."""
        self._running: tuple[int, asyncio.Task[Any]] | None = None

    def __bool__(self) -> bool:
        return bool(self._assignors)

    def offer(self) -> tuple[OfferedAssignor, ...]:
        """What each says now, what it said before where that cannot be told. Never raises."""
        return tuple(self._offer_of(name) for name in self._assignors)

    def _offer_of(self, name: str) -> OfferedAssignor:
        low, high = self._ranges[name]
        try:
            said = _checked(self._assignors[name].metadata(), low, high)
        except (Exception, asyncio.CancelledError) as err:  # noqa: BLE001 - whatever a user raises
            if name not in self._silent:  # told once, not with every heartbeat
                self._silent.add(name)
                text, extra = "metadata() of assignor %s failed: %r", self._extra(name)
                _log.error(text, name, err, exc_info=err, extra=extra)
            said = AssignorMetadata(version=high)
            return self._offered.setdefault(name, _offered(name, low, high, said))
        self._silent.discard(name)
        offered = self._offered[name] = _offered(name, low, high, said)
        return offered

    def _extra(self, name: str) -> dict[str, object]:
        return {**self._fields, "assignor": name}

    # -- computing ---------------------------------------------------------------------------

    async def compute(self, command: ComputeAssignment) -> AssignmentComputed:
        """Run the assignor that was chosen."""
        number, group = command.number, command.group
        assignor = self._assignors.get(group.assignor)
        if assignor is None:
            what = f"the coordinator chose {group.assignor!r}, which is none of ours"
            return AssignmentComputed(number, failure=AssignorFailed(what))
        run = _run(assignor, self._extra(group.assignor), group.members, group.topics)
        task = asyncio.get_running_loop().create_task(run, name=f"assignor {group.assignor}")
        self._running = number, task
        try:
            await asyncio.wait([task], timeout=command.timeout_ms / 1000)
        finally:
            if not task.done():
                task.cancel()
                task.add_done_callback(_retrieve)
        if not task.done():
            what = f"assign() did not return within {command.timeout_ms} ms"
            return AssignmentComputed(number, failure=AssignorFailed(what))
        if task.cancelled():
            return AssignmentComputed(number, failure=AssignorFailed("assign() was cancelled"))
        cause = task.exception()
        if cause is None:
            return AssignmentComputed(number, task.result())
        failure = AssignorFailed(f"assign() raised {told(cause)}")
        failure.__cause__ = cause
        return AssignmentComputed(number, failure=failure)

    def abandon(self, command: AbandonComputation) -> None:
        """Nobody waits for this computation any more. A thread runs on, to no effect."""
        if self._running is not None and self._running[0] == command.number:
            self._running[1].cancel()

    def named(self) -> Iterator[tuple[str, ClientAssignor]]:
        """All of them, with their names, in order."""
        yield from self._assignors.items()


def _offered(name: str, low: int, high: int, said: AssignorMetadata) -> OfferedAssignor:
    return OfferedAssignor(name, low, high, said.reason, said.version, bytes(said.data))


def _checked(said: object, low: int, high: int) -> AssignorMetadata:
    if not isinstance(said, AssignorMetadata):
        raise TypeError(f"it returned {shown(said)}; expected AssignorMetadata")
    data: Any = said.data
    version: Any = said.version
    reason: Any = said.reason
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"data = {shown(data)}: expected bytes")
    if not isinstance(version, int) or not low <= version <= high:
        raise ValueError(f"version = {shown(version)}: expected one from {low} to {high}")
    if not isinstance(reason, int) or reason not in _INT8:
        raise ValueError(f"reason = {shown(reason)}: expected a number from -128 to 127")
    return said


async def _run(assignor: ClientAssignor, extra: dict[str, object], *arguments: Any) -> object:
    if inspect.iscoroutinefunction(assignor.assign):
        return await assignor.assign(*arguments)
    returned: object = await _in_thread(assignor.assign, extra, *arguments)
    return await returned if inspect.isawaitable(returned) else returned


async def _in_thread(
    function: Callable[..., object], extra: dict[str, object], *arguments: Any
) -> object:
    """What ``function`` returns or raises, in a thread of its own that nobody has to wait for."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[object] = loop.create_future()
    context = contextvars.copy_context()

    def tell(result: object, failure: BaseException | None) -> None:
        if answer.done():
            return
        if failure is None:
            answer.set_result(result)
        else:
            answer.set_exception(failure)

    def work() -> None:
        result: object = None
        failure: BaseException | None = None
        try:
            result = context.run(function, *arguments)
        except BaseException as err:  # noqa: BLE001 - it must not end in the thread, unseen
            failure = err
            if not isinstance(err, Exception) or isinstance(err, StopIteration):
                # a future does not take the one, and the others would end the event loop
                failure = RuntimeError(told(err))
                failure.__cause__ = err
        try:
            loop.call_soon_threadsafe(tell, result, failure)
        except RuntimeError:
            _log.debug("an assignor returned after its event loop was closed", extra=extra)

    threading.Thread(target=work, name="kip848-assignor", daemon=True).start()
    return await answer


def _retrieve(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        task.exception()  # or asyncio complains that its result was never read
