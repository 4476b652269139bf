"""Holds answers back until the storage has written what they acknowledge."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import anyio
import anyio.lowlevel

from mock_coordinator.core.inputs import Input
from mock_coordinator.core.outputs import Output
from mock_coordinator.core.state.broker import Disk
from mock_coordinator.storage import Storage

__all__ = ["StorageGate"]

_IDLE_FLUSH_S: Final = 1
"""How often a storage that syncs once a second is flushed while there are no requests."""


class StorageGate:
    """Between the core's outputs and ``perform``. Without a storage it is always open."""

    def __init__(self, storage: Storage | None, perform: Callable[[Output], None]) -> None:
        self._storage: Final = storage
        self._perform: Final = perform
        self._held: list[Output] = []
        self._dirty: anyio.Event | None = None

    def take(self, disk: Disk, event: Input, outputs: tuple[Output, ...]) -> None:
        """Give the storage what a step of the core changed."""
        if self._storage is not None:
            self._storage.take(disk, event, outputs)

    def send(self, outputs: tuple[Output, ...]) -> None:
        """Perform outputs, or hold them back until what was written before them is safe."""
        if self._storage is None or not (self._storage.is_dirty or self._held):
            for output in outputs:
                self._perform(output)
            return
        self._held += outputs
        if self._dirty is None:
            self.flush()
        else:
            self._dirty.set()

    def flush(self) -> None:
        """Make safe what was written, and send the answers that wait for it.

        Raises ``OSError`` if the disk fails: then no answer is sent, and the broker must stop.
        """
        if self._storage is None:
            return
        self._storage.flush()
        held, self._held = self._held, []
        for output in held:
            self._perform(output)

    async def run(self) -> None:
        """Flush once per turn of the event loop in which anything was written, until cancelled.

        All requests of a turn share one write to the disk. Without a storage it returns at once.
        Raises ``OSError`` if the disk fails.
        """
        if self._storage is None:
            return
        try:
            while True:
                self._dirty = anyio.Event()
                if not self._held:
                    with anyio.move_on_after(_IDLE_FLUSH_S):
                        await self._dirty.wait()
                await anyio.lowlevel.checkpoint()  # let other tasks of this turn write, too
                self.flush()
        finally:
            self._dirty = None
