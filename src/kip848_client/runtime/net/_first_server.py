"""The first bootstrap server that answers.

A server that accepts connections and never answers costs the whole connection timeout. So after a
second the next one is tried in parallel, and the first that is ready wins.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from kip848_client.errors import BootstrapFailed, TransportError
from kip848_client.runtime.net._links import Link

__all__ = ["first_to_connect"]

_HEAD_START_S: Final = 1.0


async def first_to_connect(links: Sequence[Link], head_start_s: float = _HEAD_START_S) -> Link:
    """Return the first connected link; each next one is tried ``head_start_s`` after the previous
    one.

    Raises ``BootstrapFailed`` with every server's reason, and at once any error that another server
    would give, too: ``BrokerError`` for our credentials.
    """
    waiting = list(links)
    trying: dict[asyncio.Task[Any], Link] = {}
    reasons: list[str] = []
    try:
        while waiting or trying:
            if waiting:
                link = waiting.pop(0)
                trying[asyncio.get_running_loop().create_task(link.connect())] = link
            done, _ = await asyncio.wait(
                trying,
                timeout=head_start_s if waiting else None,
                return_when=asyncio.FIRST_COMPLETED,
            )
            failures = [task for task in done if task.exception() is not None]
            if len(failures) < len(done):
                return next(trying[task] for task in done if task not in failures)
            for task in failures:
                del trying[task]
                reasons.append(_reason(task))
    finally:
        for task in trying:
            task.cancel()
        await asyncio.gather(*trying, return_exceptions=True)
    raise BootstrapFailed(
        f"no bootstrap server could be reached: {'; '.join(sorted(reasons))}. "
        "Check bootstrap_servers, that security_protocol is the listener's, and that it allows "
        "this host."
    )


def _reason(task: asyncio.Task[Any]) -> str:
    error = task.exception()
    assert error is not None, "only failures have a reason"
    if not isinstance(error, TransportError):
        raise error
    return str(error)
