"""Closing a client step by step: a failed step does not stop the next.

A failed step must not keep later ones from closing their part, or connections and tasks would leak.
The first error is raised at the end. Closing again repeats only the steps that did not succeed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

__all__ = ["Closing", "Step"]

Step = Callable[[], Awaitable[None]]


class Closing:
    """Runs ``steps`` in a task of its own, so that they continue when the caller is cancelled."""

    def __init__(self, steps: Iterable[Step]) -> None:
        self._steps = list(steps)
        self._task: asyncio.Task[None] | None = None

    @property
    def over(self) -> bool:
        """Whether closing has ended."""
        return self._task is not None and self._task.done()

    async def finish(self) -> None:
        """Begin closing, or wait for another caller's, or repeat the failed steps. Raises the first
        error, with notes about the others."""
        if self._task is None or (self._task.done() and self._steps):
            self._task = asyncio.get_running_loop().create_task(self._run(), name="kip848-close")
            self._task.add_done_callback(_retrieve)
        await asyncio.shield(self._task)

    async def _run(self) -> None:
        errors: list[BaseException] = []
        for step in list(self._steps):
            try:
                await step()
            except BaseException as err:  # noqa: BLE001 - raised at the end; see the module
                errors.append(err)
            else:
                self._steps.remove(step)
        for other in errors[1:]:
            errors[0].add_note(f"while closing, also: {other!r}")
        if errors:
            raise errors[0]


def _retrieve(task: asyncio.Task[None]) -> None:
    if not task.cancelled():
        task.exception()  # all callers may have been cancelled
