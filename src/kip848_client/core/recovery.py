"""When to begin anew from the bootstrap servers (KIP-899, KIP-1102). Pure: time is an argument.

Brokers may all move while a client does not look: then no address that it knows answers, or, worse,
brokers of another cluster do. A broker can say so (REBOOTSTRAP_REQUIRED). Else it shows by nobody
giving usable metadata for some time, counted from the first question without an answer: between two
regular refreshes nobody was asked, and nobody has failed.
"""

from __future__ import annotations

__all__ = ["Recovery"]


class Recovery:
    """The rule for one client. ``trigger_ms`` is Kafka's
    ``metadata.recovery.rebootstrap.trigger.ms``, ``None`` for never."""

    def __init__(self, trigger_ms: int | None) -> None:
        self._trigger_ms = trigger_ms
        self._since_ms: int | None = None

    def asked(self, now_ms: int) -> None:
        """Metadata was asked for."""
        if self._since_ms is None:
            self._since_ms = now_ms

    def usable(self) -> None:
        """A broker answered with what can be used."""
        self._since_ms = None

    def failed(self, now_ms: int) -> bool:
        """Nobody did; returns whether to begin anew now."""
        if self._trigger_ms is None or self._since_ms is None:
            return False
        if now_ms - self._since_ms < self._trigger_ms:
            return False
        self._since_ms = None  # the new beginning gets as much time
        return True

    def required(self) -> bool:
        """A broker asks for it; returns whether to do so."""
        if self._trigger_ms is None:
            return False
        self._since_ms = None
        return True
