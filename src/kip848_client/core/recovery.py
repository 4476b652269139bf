"""When to rebootstrap (KIP-899, KIP-1102). Pure: time is an argument.

All brokers may move while a client is idle. Then no known address answers or, worse, brokers of
another cluster do. A broker can report this (REBOOTSTRAP_REQUIRED). Otherwise it shows when no
broker gives usable metadata for some time. This time counts from the first unanswered request,
because there are no requests between two regular refreshes.
"""

from __future__ import annotations

__all__ = ["Recovery"]


class Recovery:
    """The rule for one client.

    Args:
        trigger_ms: Kafka's ``metadata.recovery.rebootstrap.trigger.ms``; ``None`` for never.
    """

    def __init__(self, trigger_ms: int | None) -> None:
        self._trigger_ms = trigger_ms
        self._since_ms: int | None = None

    def asked(self, now_ms: int) -> None:
        """Metadata was requested."""
        if self._since_ms is None:
            self._since_ms = now_ms

    def usable(self) -> None:
        """A broker returned usable metadata."""
        self._since_ms = None

    def failed(self, now_ms: int) -> bool:
        """A request failed; returns whether to rebootstrap now."""
        if self._trigger_ms is None or self._since_ms is None:
            return False
        if now_ms - self._since_ms < self._trigger_ms:
            return False
        self._since_ms = None  # the rebootstrap gets as much time
        return True

    def required(self) -> bool:
        """A broker requires a rebootstrap; returns whether to do it."""
        if self._trigger_ms is None:
            return False
        self._since_ms = None
        return True
