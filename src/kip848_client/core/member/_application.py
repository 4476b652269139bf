"""The application's side: its subscription, and whether it polls.

Nothing here knows about the group. ``MemberCore`` asks whether to join, and whether the application
has not polled for too long.
"""

from __future__ import annotations

from collections.abc import Callable

from kip848_client.core.member._commands import Command, NotPolled
from kip848_client.core.member._heartbeat import Subscription

__all__ = ["Application"]


class Application:
    """The application of a member. ``max_poll_interval_ms`` is Kafka's setting of that name."""

    def __init__(self, max_poll_interval_ms: int, emit: Callable[[Command], None]) -> None:
        self._max_poll_interval_ms = max_poll_interval_ms
        self._emit = emit
        self._poll_by_ms: int | None = None
        self._stall_was_told = False
        self.subscription: Subscription | None = None
        """The subscription of the member (or of its next join); ``None`` if it should not be in the
        group."""
        self.next_subscription: Subscription | None = None
        """Set during a leave; it becomes the subscription when the old membership is gone."""
        self.join_wanted = False
        """Subscribed and not joined yet: the next poll joins (KAFKA-17154)."""
        self.polling = False
        """The application is suspended in a poll; its interval does not run."""
        self.polled_meanwhile = False
        """The application polled since the member began to leave: the member may rejoin at once."""

    @property
    def poll_by_ms(self) -> int | None:
        """Deadline of the next poll; ``None`` while polling."""
        return self._poll_by_ms

    def is_overdue(self, now_ms: int) -> bool:
        """Whether it has not polled for ``max.poll.interval.ms``."""
        return self._poll_by_ms is not None and now_ms >= self._poll_by_ms

    def poll_age_ms(self, now_ms: int) -> int | None:
        """Time since the last poll (or since the join): 0 while polling, ``None`` before the first
        poll."""
        if self.polling:
            return 0
        if self._poll_by_ms is None:
            return None
        return now_ms - self._poll_by_ms + self._max_poll_interval_ms

    @property
    def stall_due_ms(self) -> int | None:
        """When to report that the application polls too rarely; reported once until the next
        poll."""
        if self._poll_by_ms is None or self._stall_was_told:
            return None
        return self._poll_by_ms - self._max_poll_interval_ms // 2

    def report_stall(self, now_ms: int) -> None:
        """Report if the application has not polled for half of the interval: there is time to
        act."""
        due_ms = self.stall_due_ms
        if due_ms is not None and now_ms >= due_ms:
            self._stall_was_told = True
            self.tell_stall(now_ms)

    def tell_stall(self, now_ms: int) -> None:
        """Report the time since the last poll, and what is left of the interval."""
        age_ms = self.poll_age_ms(now_ms) or 0
        left_ms = max(0, self._max_poll_interval_ms - age_ms)
        self._emit(NotPolled(age_ms, left_ms))

    def polled(self, now_ms: int, *, waiting: bool) -> None:
        """Handle a poll; ``waiting``: the application is suspended until there are records."""
        self.polling = waiting
        self.polled_meanwhile = True
        self.restart_interval(now_ms)

    def poll_ended(self, now_ms: int) -> None:
        """Handle the end of a poll that waited."""
        self.polling = False
        self.restart_interval(now_ms)

    def restart_interval(self, now_ms: int) -> None:
        """Restart ``max.poll.interval.ms``, unless the application is polling."""
        self._poll_by_ms = None if self.polling else now_ms + self._max_poll_interval_ms
        self._stall_was_told = False

    def subscribe_later(self, subscription: Subscription) -> None:
        """Keep a subscription until the old membership is gone."""
        self.next_subscription = subscription
        self.polled_meanwhile = self.polling

    def leaving(self) -> None:
        """Handle a leave: drop subscriptions that were not yet joined for."""
        self.join_wanted = False
        self.next_subscription = None

    def take_next(self) -> bool:
        """Handle the end of the old membership; returns whether there is a next subscription."""
        if self.next_subscription is None:
            return False
        self.subscription, self.next_subscription = self.next_subscription, None
        self.join_wanted = True
        return True
