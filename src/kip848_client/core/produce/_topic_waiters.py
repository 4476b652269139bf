"""Who waits for the partitions of which topic. There may be as many as an application has tasks, so
nothing here is counted through for each of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from heapq import heappop, heappush

__all__ = ["TopicWaiters"]


class TopicWaiters:
    """Tickets by topic, with the time until which each waits."""

    def __init__(self) -> None:
        self._topics: dict[int, str] = {}
        self._tickets: dict[str, dict[int, int]] = {}
        """With the time since which each waits."""
        self._deadlines: list[tuple[int, int]] = []
        """A heap, with some that wait no longer."""

    @property
    def topics(self) -> Collection[str]:
        """What is waited for."""
        return self._tickets.keys()

    def since_ms(self, topic: str) -> int:
        """Since when the oldest ticket has waited for this topic, which some ticket waits for."""
        return next(iter(self._tickets[topic].values()))

    def add(self, now_ms: int, ticket: int, topic: str, deadline_ms: int) -> None:
        """One more waits."""
        self._topics[ticket] = topic
        self._tickets.setdefault(topic, {})[ticket] = now_ms
        heappush(self._deadlines, (deadline_ms, ticket))

    def forget(self, ticket: int) -> None:
        """This one waits no longer."""
        topic = self._topics.pop(ticket, None)
        if topic is not None:
            tickets = self._tickets[topic]
            del tickets[ticket]
            if not tickets:
                del self._tickets[topic]

    def take(self, topic: str) -> Collection[int]:
        """All that wait for this topic; they wait no longer."""
        tickets = self._tickets.pop(topic, {})
        for ticket in tickets:
            del self._topics[ticket]
        return tickets

    def take_overdue(self, now_ms: int) -> Iterator[tuple[int, str]]:
        """Those whose time is over, with what they have waited for; they wait no longer."""
        while (due_ms := self.due_ms()) is not None and due_ms <= now_ms:
            _, ticket = heappop(self._deadlines)
            topic = self._topics[ticket]
            self.forget(ticket)
            yield ticket, topic

    def due_ms(self) -> int | None:
        """When the time of the first is over."""
        deadlines = self._deadlines
        while deadlines and deadlines[0][1] not in self._topics:
            heappop(deadlines)
        return deadlines[0][0] if deadlines else None
