"""Starts a client, and waits for brokers that cannot be reached for a moment.

A started client waits for its brokers by itself. ``start`` tries each bootstrap server once, and
the drivers, executors and writers of a query start clients at any time: for each plan, for each
commit, and in each new Python worker.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final, Protocol, TypeVar

from kip848_client.core.backoff import Backoff
from kip848_client.errors import TransportError

__all__ = ["connected"]

_log = logging.getLogger("kip848_client.spark")

_PAUSE_MS: Final = 100
_PAUSE_MAX_MS: Final = 1_000
_LOGGED_AFTER_S: Final = 1.0


class _Client(Protocol):
    async def start(self) -> None: ...


C = TypeVar("C", bound=_Client)


async def connected(make: Callable[[], C], setting: str, within_ms: int) -> C:
    """Return a started client. ``make`` is called for each attempt: a client starts only once.

    Attempts are repeated while no broker can be reached, for as long as ``setting`` allows
    (``within_ms``). Then the error of the last attempt is raised; all other errors at once. A wait
    of more than a second is logged once.
    """
    began = time.monotonic()
    pauses = Backoff(_PAUSE_MS, _PAUSE_MAX_MS, _as_it_is)
    is_logged = False
    while True:
        client = make()
        try:
            await client.start()
        except TransportError as err:
            waited_s = time.monotonic() - began
            pause_s = pauses.next_ms() / 1000
            if waited_s + pause_s >= within_ms / 1000:
                raise
            if waited_s + pause_s >= _LOGGED_AFTER_S and not is_logged:
                is_logged = True
                _log.warning(
                    "no broker answers; trying again for %s=%d: %s", setting, within_ms, err
                )
        else:
            return client
        await asyncio.sleep(pause_s)


def _as_it_is(pause_ms: int) -> int:
    return pause_ms
