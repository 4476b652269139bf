"""The topics that are written to: their number of partitions, and which one a record goes to.

A topic is watched from its first use until it has been unused for a while. It is requested by name,
so it is whichever topic has the name at the moment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kip848_client.core.cluster import NO_NODE, Leaders, MetadataQuestions, TopicLeaders
from kip848_client.core.produce._accumulator import Accumulator
from kip848_client.core.produce._commands import Command, Done, Failed
from kip848_client.core.produce._events import TopicWanted
from kip848_client.core.produce._model import ProduceSettings
from kip848_client.core.produce._routes import Choose, Route
from kip848_client.core.produce._topic_waiters import TopicWaiters
from kip848_client.core.types import ZERO_TOPIC_ID, TopicPartition, Wait
from kip848_client.error_codes import ErrorCode, error_name
from kip848_client.errors import BrokerError, Kip848Error, RequestTimedOut, broker_error

__all__ = ["Topics"]

_HOPELESS: Final = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.INVALID_TOPIC_EXCEPTION)
_GONE_AFTER_MS: Final = 1_000
"""A broker may not know a new topic yet."""
_HINT: Final = "create the topic, or look at the name and the ACLs"


class Topics:
    """All topics. ``waiting`` returns the number of unacknowledged batches of a partition."""

    def __init__(
        self,
        settings: ProduceSettings,
        choose: Choose,
        leaders: Leaders,
        metadata: MetadataQuestions,
        emit: Callable[[Command], None],
        waiting: Callable[[TopicPartition], int],
    ) -> None:
        self.routes: dict[str, Route] = {}
        """Topics whose partitions are known (the hot path)."""
        self._settings = settings
        self._choose = choose
        self._leaders = leaders
        self._metadata = metadata
        self._emit = emit
        self._waiting = waiting
        self._used: dict[str, int] = {}
        """When each topic was last used, oldest first."""
        self._waiters = TopicWaiters()
        self._troubles: dict[str, tuple[int, str]] = {}
        """The last error, as code and text, of topics that calls wait for."""
        self._missing_since: dict[str, int] = {}
        """When brokers first returned that a topic does not exist."""

    def closed(self, tp: TopicPartition, size_bytes: int, *, full: bool) -> None:
        """A batch was closed."""
        route = self.routes.get(tp[0])
        if route is not None:
            route.closed(tp, size_bytes, full=full)

    # -- watched topics ----------------------------------------------------------------------

    def use(self, now_ms: int, topic: str) -> None:
        """A topic is written to, or will be."""
        if self._used.pop(topic, None) is None:
            self._metadata.watch(topic, None)
        self._used[topic] = now_ms

    def want(self, now_ms: int, event: TopicWanted) -> None:
        """A call needs the number of partitions."""
        self.use(now_ms, event.topic)
        if event.topic in self.routes and not event.refresh:
            self._emit(Done(event.ticket))
            return
        self._waiters.add(now_ms, event.ticket, event.topic, event.deadline_ms)
        self._ask(event.topic)

    def wait_ended(self, ticket: int) -> None:
        """The caller has given up."""
        self._waiters.forget(ticket)

    def close(self, error: Kip848Error) -> None:
        """End all waits. If brokers returned an error for a topic, use that instead of
        ``error``."""
        for topic in tuple(self._waiters.topics):
            for ticket in self._waiters.take(topic):
                self._emit(Failed(ticket, self.missing(topic) or error))

    # -- metadata ----------------------------------------------------------------------------

    def learn(self, now_ms: int, told: TopicLeaders) -> bool:
        """Apply the metadata of a topic; returns whether its leaders may have changed."""
        topic = told.topic
        if topic not in self._used:
            return False
        if told.error_code:
            self._on_error(now_ms, told)
            return False
        self._missing_since.pop(topic, None)
        if told.topic_id == ZERO_TOPIC_ID or not told.partitions:
            return False
        self._leaders.learn(told)
        known = self._leaders.partitions_of(told.topic_id)
        route = self.routes.get(topic)
        if route is None:
            route = self.routes[topic] = Route(
                self._choose, self._settings.batch_bytes, self._waiting
            )
        route.learn(
            tuple(TopicPartition(topic, number) for number in range(len(known))),
            [TopicPartition(topic, number) for number, at in known.items() if at.leader != NO_NODE],
        )
        if len(route.led) < len(known):
            # records go to other partitions meanwhile, so nothing else asks for the leaders
            self._metadata.want(topic, "some of its partitions have no leader")
        self._troubles.pop(topic, None)
        for ticket in self._waiters.take(topic):
            self._emit(Done(ticket))
        return True

    def _on_error(self, now_ms: int, told: TopicLeaders) -> None:
        code, topic = told.error_code, told.topic
        if code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            self._missing_since.setdefault(topic, now_ms)
        else:
            self._missing_since.pop(topic, None)
        self._troubles[topic] = (code, error_name(code))
        if code in _HOPELESS:
            for ticket in self._waiters.take(topic):
                self._emit(Failed(ticket, self._told(topic)))

    def asked_in_vain(self, why: str) -> None:
        """No broker answered."""
        for topic in self._waiters.topics:
            self._troubles[topic] = (0, why)
        self.want_again()

    def want_again(self) -> None:
        """The topics that calls wait for were not in the answer."""
        for topic in self._waiters.topics:
            self._ask(topic)

    def _ask(self, topic: str) -> None:
        """A call that waits for a topic is going to write to it, so it may be created. A topic that
        was known before is not created again after its deletion."""
        create = topic not in self.routes
        self._metadata.want(topic, "its partitions are wanted", create=create)

    def missing(self, topic: str) -> BrokerError | None:
        """The brokers' error for a topic that did not exist when they were last asked."""
        code, _ = self._troubles.get(topic, (0, ""))
        if code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return None
        return _refusal(code, topic)

    def gone(self, now_ms: int) -> dict[str, BrokerError]:
        """Topics that brokers have reported as missing for a second, with the error. This excludes
        topics that are being created."""
        since = now_ms - _GONE_AFTER_MS
        topics = [topic for topic, at_ms in self._missing_since.items() if at_ms <= since]
        found = ((topic, self.missing(topic)) for topic in topics)
        return {topic: error for topic, error in found if error is not None}

    def gone_due_ms(self, now_ms: int) -> int | None:
        """When ``gone`` gets its next entry."""
        due = (since_ms + _GONE_AFTER_MS for since_ms in self._missing_since.values())
        return min((each for each in due if each > now_ms), default=None)

    def give_up(self, gone: Mapping[str, BrokerError]) -> None:
        """End the waits for these topics."""
        for topic, error in gone.items():
            for ticket in self._waiters.take(topic):
                self._emit(Failed(ticket, error))

    def waits(self) -> dict[str, Wait]:
        """What records or calls wait for, since the oldest one."""
        found: dict[str, Wait] = {}
        for topic in self._waiters.topics:
            code, why = self._troubles.get(topic, (0, "no broker has answered yet"))
            hint = f" ({_HINT})" if code else ""
            found[f"the partitions of topic {topic}"] = Wait(
                f"Metadata: {why}{hint}", self._waiters.since_ms(topic)
            )
        return found

    def _told(self, topic: str) -> Kip848Error:
        code, why = self._troubles.get(topic, (0, "no broker has answered yet"))
        if code:
            return _refusal(code, topic)
        return RequestTimedOut(f"how many partitions {topic} has is not known in time: {why}")

    # -- time --------------------------------------------------------------------------------

    def due_ms(self) -> int | None:
        """When the first call reaches its deadline, or a topic has been unused for long."""
        due_ms = self._waiters.due_ms()
        oldest_ms = next(iter(self._used.values()), None)
        if oldest_ms is None:
            return due_ms
        idle_ms = oldest_ms + self._settings.metadata_max_idle_ms
        return idle_ms if due_ms is None else min(due_ms, idle_ms)

    def settle(self, now_ms: int, accumulator: Accumulator) -> None:
        """Fail the calls that have reached their deadline, and forget unused topics."""
        for ticket, topic in self._waiters.take_overdue(now_ms):
            self._emit(Failed(ticket, self._told(topic)))
        while self._used:
            topic, used_ms = next(iter(self._used.items()))
            if now_ms < used_ms + self._settings.metadata_max_idle_ms:
                break
            del self._used[topic]
            if topic in self._waiters.topics or not accumulator.is_idle(topic):
                self._used[topic] = now_ms
            else:
                self._forget(topic)

    def _forget(self, topic: str) -> None:
        self._metadata.unwatch(topic)
        self._leaders.forget(topic)
        self.routes.pop(topic, None)
        self._troubles.pop(topic, None)
        self._missing_since.pop(topic, None)


def _refusal(code: int, topic: str) -> BrokerError:
    return broker_error(code, error_name(code), f"topic {topic}", api="Metadata", hint=_HINT)
