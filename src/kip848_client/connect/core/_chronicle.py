"""Turns the steps of a worker's core into events for users. Contains no decisions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from kip848_client.connect.core import _classic_messages as ms
from kip848_client.connect.core._classic_core import ClassicWorkerCore
from kip848_client.connect.core._commands import StartItems, StopItems
from kip848_client.connect.core._core import WorkerCore
from kip848_client.connect.core._model import AssignedItem
from kip848_client.error_codes import error_name
from kip848_client.observe.core.watching import (
    Chronicle,
    HeartbeatAnswered,
    HeartbeatLost,
    HeartbeatRefused,
    MemberEpochChanged,
    MembershipEvent,
)

__all__ = ["ItemsAssigned", "ItemsLost", "ItemsRevoked", "WorkerChronicle"]


@dataclass(frozen=True, slots=True)
class ItemsAssigned(MembershipEvent):
    """Items are new; the listener is about to be called.

    Attributes:
        items: The new items. Empty if an assignment has nothing new.
    """

    items: tuple[AssignedItem, ...]


@dataclass(frozen=True, slots=True)
class ItemsRevoked(MembershipEvent):
    """Items are given up for other workers.

    The listener is about to be called for those that it has started.

    Attributes:
        items: The revoked items.
    """

    items: tuple[AssignedItem, ...]


@dataclass(frozen=True, slots=True)
class ItemsLost(MembershipEvent):
    """Another worker may run these items already.

    The listener is about to be called for those that it has started.

    Attributes:
        items: The lost items.
        cause: The reason, as text.
    """

    items: tuple[AssignedItem, ...]
    cause: str


class WorkerChronicle(Chronicle):
    """Creates the events of a worker on either protocol. In a classic group the epoch of an event
    is the generation."""

    def __init__(self, origin_ms: int, core: WorkerCore | ClassicWorkerCore) -> None:
        super().__init__(origin_ms)
        self._core = core

    def of(
        self, now_ms: int, event: Any, commands: Iterable[Any], *, heartbeats: bool = False
    ) -> Iterator[MembershipEvent]:
        yield from super().of(now_ms, event, commands, heartbeats=heartbeats)
        old, epoch = self._epoch, self._core.member_epoch or 0
        if epoch != old:  # the classic core has no command for this
            self._epoch = epoch
            yield MemberEpochChanged(self._origin_ms + now_ms, epoch, old)

    def _heartbeat(self, command: Any) -> int | None:
        if isinstance(command, ms.SendClassicHeartbeat):
            return command.attempt
        return super()._heartbeat(command)

    def _heard(self, now_ms: int, event: Any) -> Iterator[MembershipEvent]:
        if not isinstance(event, ms.ClassicAnswer):
            yield from super()._heard(now_ms, event)
            return
        sent_ms = self._sent.pop(event.attempt, None)
        if sent_ms is None:
            return
        time_ms, took_ms = self._origin_ms + now_ms, now_ms - sent_ms
        match event:
            case ms.RequestRefused(code=code):
                yield HeartbeatRefused(time_ms, self._epoch, took_ms, error_name(code))
            case ms.RequestLost(reason=reason):
                yield HeartbeatLost(time_ms, self._epoch, took_ms, reason.value)
            case ms.RequestFailed(error=error):
                yield HeartbeatLost(time_ms, self._epoch, took_ms, str(error))
            case _:
                yield HeartbeatAnswered(time_ms, self._epoch, took_ms)

    def _of_others(self, time_ms: int, command: Any) -> MembershipEvent | None:
        match command:
            case StartItems():
                return ItemsAssigned(time_ms, self._epoch, command.items)
            case StopItems() if command.lost:
                return ItemsLost(time_ms, self._epoch, command.items, self._cause)
            case StopItems():
                return ItemsRevoked(time_ms, self._epoch, command.items)
            case _:
                return super()._of_others(time_ms, command)
