"""Signals that end a run. The first one requests the end; after it, all have their previous effect
again."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import Any

from kip848_client.core.short import short
from kip848_client.errors import ConfigError, LocalProtocolError

__all__ = ["checked_signals", "on_first_signal"]


def checked_signals(given: object) -> tuple[signal.Signals, ...]:
    """Check a call's ``stop_on``. Raises ``ConfigError``."""
    if not isinstance(given, Iterable) or isinstance(given, str | bytes):
        raise ConfigError(f"stop_on = {short(given)}: expected signals, as in (signal.SIGTERM,)")
    found: list[signal.Signals] = []
    for each in given:
        try:
            found.append(signal.Signals(each))
        except ValueError:
            raise ConfigError(f"stop_on has {short(each)}, which is not a signal") from None
    return tuple(dict.fromkeys(found))


@contextmanager
def on_first_signal(signals: Iterable[signal.Signals], call: Callable[[], None]) -> Generator[None]:
    """Call ``call`` once, in the running event loop, when the first of these signals arrives. After
    that, and at the end of the block, all signals have their previous effect, so a second Ctrl-C
    interrupts a slow stop. Raises ``LocalProtocolError`` where signals cannot be handled.
    """
    loop = asyncio.get_running_loop()
    before: dict[signal.Signals, Any] = {}

    def put_back() -> None:
        while before:
            number, handler = before.popitem()
            loop.remove_signal_handler(number)
            if handler is not None:  # None if it was not set from Python
                signal.signal(number, handler)

    def came() -> None:
        put_back()
        call()

    try:
        for number in signals:
            handler = signal.getsignal(number)
            try:
                loop.add_signal_handler(number, came)
            except (RuntimeError, ValueError, NotImplementedError) as err:
                raise LocalProtocolError(
                    f"{number.name} cannot be handled here ({err!r}): asyncio handles signals in "
                    "the main thread and on Unix only, and not all of them. Call request_stop() "
                    "from your own handler"
                ) from err
            before[number] = handler
        yield
    finally:
        put_back()
