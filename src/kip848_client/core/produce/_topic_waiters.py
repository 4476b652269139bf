"""Calls that wait for the partitions of a topic. There may be as many as the application has tasks,
so no operation here iterates over all of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from heapq import heappop, heappush

__all__ = ["TopicWaiters"]


class TopicWaiters:
    """Tickets by topic, each with its deadline."""

    def __init__(self) -> None:
        self._topics: dict[int, str] = {}
        self._tickets: dict[str, dict[int, int]] = {}
        """With the time since which each has waited."""
        self._deadlines: list[tuple[int, int]] = []
        """A heap; may contain tickets that no longer wait."""

    @property
    def topics(self) -> Collection[str]:
        """The topics that tickets wait for."""
        return self._tickets.keys()

    def since_ms(self, topic: str) -> int:
        """Since when the oldest ticket has waited for this topic. At least one must wait for it."""
        return next(iter(self._tickets[topic].values()))

    def add(self, now_ms: int, ticket: int, topic: str, deadline_ms: int) -> None:
        """Add a ticket."""
        self._topics[ticket] = topic
        self._tickets.setdefault(topic, {})[ticket] = now_ms
        heappush(self._deadlines, (deadline_ms, ticket))

    def forget(self, ticket: int) -> None:
        """Forget a ticket that no longer waits."""
        topic = self._topics.pop(ticket, None)
        if topic is not None:
            tickets = self._tickets[topic]
            del tickets[ticket]
            if not tickets:
                del self._tickets[topic]

    def take(self, topic: str) -> Collection[int]:
        """Remove and return all tickets that wait for this topic."""
        tickets = self._tickets.pop(topic, {})
        for ticket in tickets:
            del self._topics[ticket]
        return tickets

    def take_overdue(self, now_ms: int) -> Iterator[tuple[int, str]]:
        """Remove and return the tickets that have passed their deadline, with their topics."""
        while (due_ms := self.due_ms()) is not None and due_ms <= now_ms:
            _, ticket = heappop(self._deadlines)
            topic = self._topics[ticket]
            self.forget(ticket)
            yield ticket, topic

    def due_ms(self) -> int | None:
        """The earliest deadline."""
        deadlines = self._deadlines
        while deadlines and deadlines[0][1] not in self._topics:
            heappop(deadlines)
        return deadlines[0][0] if deadlines else None
