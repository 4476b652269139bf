"""The fields of the next heartbeat, and when it is due.

Theory of operation
-------------------
*Fields.* On the wire null means "unchanged", so a member sends a field only when it differs from
what it last **sent** (KIP-848, heartbeat request). A request that carries timeout, subscription
and owned partitions is *complete*, and only a complete one makes the broker repeat an assignment
whose answer was lost, or accept the previous epoch. So after anything but a clean success the
record of what was sent is dropped, and the next request is complete.

A join (epoch 0) is complete and owns nothing: the broker refuses any other with INVALID_REQUEST.

One case needs care. A null regex means "unchanged" even at a join, if the broker still knows the
member. So once a pattern was sent, its absence is always sent as an empty string. A static member
inherits the subscription of the previous process, so each of its joins explicitly has no pattern
(otherwise Kafka 4.0 to 4.4 add the inherited one to the names).

*Timing.* The interval runs from when a heartbeat is built. After a failure the interval does not
matter, only the backoff does: a retry that waits for a full interval would find its connection dead
each time. Urgent heartbeats (joining, acknowledging, a changed subscription) skip the interval,
never the backoff, and a budget bounds how many are sent per second, so that no behaviour of a
broker or an application can turn the member into a busy loop.

While the assignment changes there are additional heartbeats, see ``_extra_heartbeats``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kip848_client.core.backoff import backoff_ms
from kip848_client.core.member._events import Subscribed
from kip848_client.core.member._extra_heartbeats import ExtraHeartbeats
from kip848_client.core.member._limits import (
    DEFAULT_INTERVAL_MS,
    URGENT_PER_WINDOW,
    URGENT_WINDOW_MS,
)
from kip848_client.core.member._model import (
    Assignment,
    HeartbeatIntent,
    MemberSettings,
    OfferedAssignor,
)
from kip848_client.core.member._reconcile import Held
from kip848_client.core.types import JOIN_EPOCH, MemberId

__all__ = ["HeartbeatClock", "IntentBuilder", "Subscription"]


@dataclass(frozen=True, slots=True)
class Subscription:
    """The user's subscription: topic names, sorted, and/or a server-side pattern."""

    topics: tuple[str, ...]
    pattern: str | None

    @classmethod
    def of(cls, event: Subscribed) -> Subscription:
        """Build it from the event; an empty pattern counts as none."""
        return cls(tuple(sorted(event.topics)), event.pattern or None)


@dataclass(frozen=True, slots=True)
class _Sent:
    subscription: Subscription
    reconciled: Held | None
    offer: tuple[OfferedAssignor, ...]


class IntentBuilder:
    """Builds each heartbeat from the difference from the previous one."""

    def __init__(self, settings: MemberSettings, member_id: MemberId) -> None:
        self._settings = settings
        self._member_id = member_id
        self._sent: _Sent | None = None
        self._pattern_was_sent = False
        self._offer = settings.client_assignors

    def forget(self) -> None:
        """The broker's knowledge is uncertain: make the next request complete."""
        self._sent = None

    def offer(self, assignors: tuple[OfferedAssignor, ...]) -> bool:
        """Offer these from now on; returns whether this must be sent before the next complete
        request."""
        self._offer = assignors
        return self._sent is not None and self._sent.offer != assignors

    def is_news(self, subscription: Subscription) -> bool:
        """Whether ``subscription`` differs from the one sent to the broker."""
        return self._sent is None or self._sent.subscription != subscription

    def build(
        self,
        epoch: int,
        subscription: Subscription,
        claim: Callable[[], Assignment],
        reconciled: Held | None,
    ) -> HeartbeatIntent:
        """Build the next heartbeat of a member in the group, or of one that joins (epoch 0).

        ``claim`` returns the partitions to report as owned. It is called only if they have to be
        sent: in a complete request, and once for each ``reconciled`` state, even if the set is
        equal, since A, B, A are three assignments to acknowledge (KAFKA-16185).
        """
        joins = epoch == JOIN_EPOCH
        before = None if joins else self._sent
        settings = self._settings
        names: tuple[str, ...] | None = subscription.topics
        regex = subscription.pattern
        heir = joins and settings.instance_id is not None
        if regex is None and (self._pattern_was_sent or heir):
            regex = ""
        acknowledges = before is None or before.reconciled != reconciled
        if before is not None:
            if before.subscription.topics == subscription.topics:
                names = None
            if before.subscription.pattern == subscription.pattern:
                regex = None
        offer = self._offer
        says_offer = bool(offer) if before is None else before.offer != offer
        self._sent = _Sent(subscription, reconciled, offer)
        self._pattern_was_sent = self._pattern_was_sent or subscription.pattern is not None
        complete = before is None
        return HeartbeatIntent(
            member_id=self._member_id,
            member_epoch=epoch,
            instance_id=settings.instance_id,
            rack_id=(settings.rack_id or None) if joins else None,
            rebalance_timeout_ms=settings.max_poll_interval_ms if complete else None,
            subscribed_topic_names=names,
            subscribed_topic_regex=regex,
            server_assignor=settings.server_assignor if complete else None,
            owned=claim() if acknowledges else None,
            client_assignors=offer if says_offer else None,
        )

    def build_leave(self, epoch: int) -> HeartbeatIntent:
        """Build the heartbeat that leaves (-1 or -2): only ids and epoch are read."""
        self.forget()
        return HeartbeatIntent(
            member_id=self._member_id, member_epoch=epoch, instance_id=self._settings.instance_id
        )


class HeartbeatClock:
    """Decides when the next heartbeat may be sent, regardless of its contents."""

    def __init__(self, settings: MemberSettings, jitter: Callable[[int], int]) -> None:
        self._settings = settings
        self._jitter = jitter
        self._due_ms = 0
        self._not_before_ms = 0
        self._window_ms = 0
        self._window_count = 0
        self._extra = ExtraHeartbeats(wanted=settings.extra_heartbeats)
        self.interval_ms = DEFAULT_INTERVAL_MS
        self.failures = 0
        """Consecutive heartbeats without an error-free answer."""
        self.fences = 0
        """How often the member was fenced since its last accepted heartbeat."""

    def next_ms(self, now_ms: int, *, urgent: bool) -> int:
        """When the next heartbeat may be built; ``now_ms`` or earlier means at once."""
        if not urgent:
            due_ms, extra_ms = self._due_ms, self._extra.due_ms
            if extra_ms is not None:
                due_ms = min(due_ms, extra_ms)
            return max(due_ms, self._not_before_ms)
        window_ends = self._window_ms + URGENT_WINDOW_MS
        if self._window_count >= URGENT_PER_WINDOW and now_ms < window_ends:
            return max(self._not_before_ms, window_ends)
        return max(self._not_before_ms, now_ms)

    def sent(self, now_ms: int, *, urgent: bool) -> None:
        """Note a heartbeat that was built: the interval starts here, unless it was an extra one;
        then the regular one stays due."""
        early = now_ms < self._due_ms
        if not early or self._extra.is_over(now_ms):
            self._due_ms = now_ms + self.interval_ms
        self._extra.sent(now_ms, self.interval_ms, extra=early and not urgent)
        if urgent:
            if now_ms >= self._window_ms + URGENT_WINDOW_MS:
                self._window_ms, self._window_count = now_ms, 0
            self._window_count += 1

    def accepted(self, now_ms: int, interval_ms: int) -> None:
        """Handle an error-free answer: end the backoff. A new interval counts from now; one that is
        not positive is the default of an unset field and is ignored."""
        self.failures = 0
        self.fences = 0
        self._not_before_ms = 0
        if interval_ms > 0 and interval_ms != self.interval_ms:
            self.interval_ms = interval_ms
            self._due_ms = now_ms + interval_ms

    @property
    def look_up_ms(self) -> int:
        """When to look up a lost coordinator: at once, or, after repeated failures, not before the
        next heartbeat may be sent. If found any earlier, it might have moved by then, and one pause
        would be added to the other."""
        return self._not_before_ms if self.failures > 1 else 0

    def target_changed(self, now_ms: int) -> None:
        """Handle a new target: (re)start extra heartbeats."""
        self._extra.target_changed(now_ms, self.interval_ms)

    def reconciled(self, now_ms: int) -> None:
        """Handle a target carried out, or a part of one: others may wait for that, and react
        soon."""
        self._extra.progress(now_ms, self.interval_ms)

    def coordinator_moved(self, now_ms: int) -> None:
        """Handle a refusal by a broker that is not the coordinator. The first time, the next
        heartbeat is sent as soon as the new coordinator is found."""
        self.failed(now_ms)
        if self.failures == 1:
            self.postpone(0)

    def failed(self, now_ms: int, cap_ms: int | None = None) -> None:
        """Handle an error or a missing answer: the next heartbeat depends on the backoff alone."""
        settings = self._settings
        cap = settings.retry_backoff_max_ms if cap_ms is None else cap_ms
        self._not_before_ms = now_ms + backoff_ms(
            self.failures, settings.retry_backoff_ms, cap, self._jitter
        )
        self.failures += 1
        self._due_ms = now_ms

    def postpone(self, until_ms: int) -> None:
        """Delay the next heartbeat without a failure: before ``until_ms`` it would be pointless."""
        self._not_before_ms = until_ms

    def fenced(self) -> None:
        """Count a fence by the coordinator."""
        self.fences += 1

    def joining(self, now_ms: int) -> None:
        """Handle a join: at once, whatever failed before, unless the member keeps being fenced.

        The first join after a fence is not delayed. A broker that fences joins (4.0 and 4.1 do so
        until the old session has expired, KAFKA-19233) is asked more and more rarely.
        """
        self._due_ms = now_ms
        self._not_before_ms = 0
        self._extra.stop()
        if self.fences > 1:
            settings = self._settings
            self._not_before_ms = now_ms + backoff_ms(
                self.fences - 2,
                settings.retry_backoff_ms,
                settings.rejoin_backoff_max_ms,
                self._jitter,
            )
