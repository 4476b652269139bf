"""Stands between the driver and the core, and applies faults to requests and responses.

Theory of operation
===================

``step`` takes the arguments of the core's ``step``, and that function itself. A request that no
fault hits is passed on. What a fault needs later (a reply to lose, a request to delay) is kept by
connection and correlation id, or in a heap ordered by time; ``deadline_ms`` is the first of those
times. Time and the core are arguments, and nothing is random.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final, cast

from kip848_client.core.wire import APIS
from kip848_client.core.wire.messages.fetch import FetchResponse
from kip848_client.errors import ConfigError
from mock_coordinator.core.faults.actions import (
    Answer,
    CorruptBatch,
    Delay,
    Disconnect,
    Drop,
    Duplicate,
    Moment,
    MoveCoordinator,
    Refuse,
    Throttle,
)
from mock_coordinator.core.faults.fault import Fault
from mock_coordinator.core.faults.match import Match, mentions
from mock_coordinator.core.faults.refusal import refusal
from mock_coordinator.core.inputs import (
    ConnectionLost,
    CoordinatorMoved,
    Input,
    RequestReceived,
)
from mock_coordinator.core.outputs import (
    CloseConnection,
    NoReply,
    Output,
    Reply,
    TornReply,
    reply_to,
)

__all__ = ["FaultInjector", "Hit"]

Step = Callable[[int, Input], tuple[Output, ...]]

_ANSWERS: Final = (Reply, NoReply)
_HITS: Final = 10_000
_CHECKSUMMED_FROM: Final = 30
"""Well inside the part of a record batch that its checksum covers."""


@dataclass(frozen=True, slots=True)
class Hit:
    """One request that a fault hit."""

    at_ms: int
    fault: Fault
    connection: int
    correlation: int
    api: str


@dataclass(slots=True)
class _Armed:
    """A fault, and the number of requests that it has matched."""

    fault: Fault
    seen: int = 0

    def takes(
        self, received: RequestReceived, topic_names: Callable[[], Mapping[bytes, str]]
    ) -> bool:
        fault = self.fault
        if self.is_spent or not fault.match.hits(received, topic_names):
            return False
        self.seen += 1
        return self.seen >= fault.nth

    @property
    def is_spent(self) -> bool:
        fault = self.fault
        return fault.times is not None and self.seen >= fault.nth - 1 + fault.times


@dataclass(frozen=True, slots=True)
class _Unread:
    """A request of a throttled connection that was not handled yet."""

    received: RequestReceived


_Place = tuple[int, int]  # connection, correlation
_Held = Input | Output | _Unread


class FaultInjector:
    """The faults of one broker or cluster: ``MockBroker.faults``.

    Args:
        topic_names: Returns the current topic names by topic id.
    """

    def __init__(self, topic_names: Callable[[], Mapping[bytes, str]]) -> None:
        self._topic_names: Final = topic_names
        self._armed: list[_Armed] = []
        self._spoiled: dict[_Place, Fault] = {}
        self._doubled: dict[_Place, int] = {}
        self._later: list[tuple[int, int, _Held]] = []
        self._sequence = 0
        self._muted: dict[int, int] = {}
        self._hits: Final = deque[Hit](maxlen=_HITS)

    # -- what the user says ------------------------------------------------------------------------

    def add(self, *faults: Fault) -> None:
        """Add faults. If several match a request, only the first one added happens. Raises
        ``ConfigError`` for anything but a ``Fault``."""
        for each in cast("tuple[object, ...]", faults):
            if not isinstance(each, Fault):
                raise ConfigError(f"expected a Fault, not {each!r}")
        self._armed += [_Armed(fault) for fault in faults]

    def remove(self, name: str) -> None:
        """Remove the faults of this name. Raises ``KeyError`` if there are none."""
        left = [armed for armed in self._armed if armed.fault.name != name]
        if len(left) == len(self._armed):
            raise KeyError(name)
        self._armed = left

    def clear(self) -> None:
        """Remove all faults. What they delay still arrives when it is due."""
        self._armed.clear()

    @property
    def hits(self) -> tuple[Hit, ...]:
        """The requests that were hit, oldest first; at most the newest 10,000."""
        return tuple(self._hits)

    @property
    def waiting(self) -> tuple[Fault, ...]:
        """The faults that may still happen."""
        return tuple(armed.fault for armed in self._armed if not armed.is_spent)

    @property
    def held_requests(self) -> int:
        """The number of requests that faults hold back now."""
        kinds = (RequestReceived, _Unread)
        return sum(isinstance(what, kinds) for _, _, what in self._later)

    # -- what the driver does ----------------------------------------------------------------------

    @property
    def deadline_ms(self) -> int | None:
        """When the next held-back item is due."""
        return self._later[0][0] if self._later else None

    def step(
        self, now_ms: int, event: Input, core: Step, *, spared: bool = False
    ) -> tuple[Output, ...]:
        """Run the core's step with faults applied. No fault hits a ``spared`` request, but faults
        may hit messages to other connections that it causes."""
        if not (self._armed or self._later or self._spoiled or self._doubled or self._muted):
            return core(now_ms, event)
        outputs: list[Output] = []
        for due in self._due(now_ms):
            if isinstance(due, Output):
                outputs.append(due)
            elif isinstance(due, _Unread):
                self._receive(now_ms, due.received, core, outputs)
            else:
                self._run(now_ms, due, core, outputs)
        if isinstance(event, ConnectionLost):
            self._forget(event.connection)
        if isinstance(event, RequestReceived) and not spared:
            self._receive(now_ms, event, core, outputs)
        else:
            self._run(now_ms, event, core, outputs)
        return tuple(outputs)

    def restarted(self) -> None:
        """Drop everything held back: all connections are gone with the brokers, and all messages in
        transit on them."""
        for kept in (self._spoiled, self._doubled, self._muted, self._later):
            kept.clear()

    def _receive(
        self, now_ms: int, event: RequestReceived, core: Step, outputs: list[Output]
    ) -> None:
        muted_until = self._muted.get(event.connection, 0)
        if muted_until > now_ms:
            self._hold(muted_until, _Unread(event))
            return
        self._muted.pop(event.connection, None)
        fault = self._fault(now_ms, event)
        if fault is None:
            self._run(now_ms, event, core, outputs)
        else:
            self._spoil(now_ms, event, fault, core, outputs)

    def _fault(self, now_ms: int, event: RequestReceived) -> Fault | None:
        if not self._armed:
            return None
        names = cache(self._topic_names)  # built at most once, only if a match needs topics
        # every fault counts the requests that it matches, even if another one hits them
        taken = [armed for armed in self._armed if armed.takes(event, names)]
        self._armed = [armed for armed in self._armed if not armed.is_spent]
        if not taken:
            return None
        fault = taken[0].fault
        api = APIS[type(event.request).API_KEY].name
        self._hits.append(Hit(now_ms, fault, event.connection, event.correlation, api))
        return fault

    def _spoil(
        self,
        now_ms: int,
        event: RequestReceived,
        fault: Fault,
        core: Step,
        outputs: list[Output],
    ) -> None:
        place = (event.connection, event.correlation)
        match fault.action:
            case Answer(response=response):
                outputs.append(reply_to(event, response))
            case Refuse(code=code, message=message):
                outputs.append(
                    reply_to(event, refusal(event.request, event.version, code, message))
                )
            case Delay(by_ms=by_ms, moment=Moment.REQUEST):
                self._hold(now_ms + by_ms, event)
            case Drop(moment=Moment.REQUEST):
                outputs.append(NoReply(*place))
            case Disconnect(moment=Moment.REQUEST):
                outputs.append(
                    CloseConnection(event.connection, "by a fault, instead of a response")
                )
            case MoveCoordinator(node_id=node_id):
                self._move_coordinators(now_ms, event, node_id, core, outputs)
                self._run(now_ms, event, core, outputs)
            case Duplicate():
                self._doubled[place] = 2
                self._run(now_ms, event, core, outputs)
                self._run(now_ms, event, core, outputs)
            case _:
                self._spoiled[place] = fault
                self._run(now_ms, event, core, outputs)

    def _move_coordinators(
        self,
        now_ms: int,
        event: RequestReceived,
        node_id: int | None,
        core: Step,
        outputs: list[Output],
    ) -> None:
        found = mentions(event.request, {})
        for group_id in sorted(found.groups):
            self._run(now_ms, CoordinatorMoved(group_id, node_id), core, outputs)
        for name in sorted(found.transactional_ids):
            moved = CoordinatorMoved(name, node_id, transactional=True)
            self._run(now_ms, moved, core, outputs)

    def _run(self, now_ms: int, event: Input, core: Step, outputs: list[Output]) -> None:
        for output in core(now_ms, event):
            self._take(now_ms, output, outputs)

    def _take(self, now_ms: int, output: Output, outputs: list[Output]) -> None:
        """Pass on an output of the core, or its replacement by a fault."""
        if not isinstance(output, _ANSWERS):
            outputs.append(output)
            return
        place = (output.connection, output.correlation)
        if place in self._doubled:
            self._doubled[place] -= 1
            if not self._doubled[place]:
                del self._doubled[place]
                return  # the second of the two answers
        fault = self._spoiled.pop(place, None)
        if fault is None or isinstance(output, NoReply):
            outputs.append(output)
            return
        match fault.action:
            case Delay(by_ms=by_ms):
                self._hold(now_ms + by_ms, output)
            case Drop():
                outputs.append(NoReply(*place))
            case Disconnect(after_bytes=None):
                why = "a fault, instead of the response"
                outputs.append(CloseConnection(output.connection, why))
            case Disconnect(after_bytes=int() as after_bytes):
                outputs.append(TornReply(output, after_bytes))
            case Throttle(for_ms=for_ms):
                self._muted[output.connection] = now_ms + for_ms
                outputs.append(_throttled(output, for_ms))
            case CorruptBatch():
                outputs.append(_corrupted(output, fault.match, self._topic_names))
            case _:
                raise AssertionError(f"unknown action: {fault.action!r}")

    # -- what waits --------------------------------------------------------------------------------

    def _hold(self, until_ms: int, what: _Held) -> None:
        self._sequence += 1
        heapq.heappush(self._later, (until_ms, self._sequence, what))

    def _due(self, now_ms: int) -> Iterable[_Held]:
        due: list[_Held] = []
        while self._later and self._later[0][0] <= now_ms:
            due.append(heapq.heappop(self._later)[2])
        return due

    def _forget(self, connection: int) -> None:
        """Handle a closed connection: a request in transit still arrives, but nothing more is read,
        and answers do not arrive."""
        self._muted.pop(connection, None)
        for kept in (self._spoiled, self._doubled):
            for place in [place for place in kept if place[0] == connection]:
                del kept[place]
        left = [each for each in self._later if not _ends_with(each[2], connection)]
        heapq.heapify(left)
        self._later = left


def _ends_with(held: _Held, connection: int) -> bool:
    """Whether a held-back item is lost with a connection."""
    if isinstance(held, _Unread):
        return held.received.connection == connection
    return isinstance(held, _ANSWERS) and held.connection == connection


def _throttled(reply: Reply, for_ms: int) -> Reply:
    if not hasattr(reply.response, "throttle_time_ms"):
        return reply
    response: Any = reply.response
    return replace(reply, response=replace(response, throttle_time_ms=for_ms))


def _corrupted(reply: Reply, match: Match, topic_names: Callable[[], Mapping[bytes, str]]) -> Reply:
    """Return the reply with damaged records: in the partition that the fault names, or in all."""
    response = reply.response
    if not isinstance(response, FetchResponse):
        return reply
    names = {} if match.topic is None else topic_names()
    topics = tuple(
        replace(
            topic,
            partitions=tuple(
                replace(each, records=_damaged(each.records))
                if match.partition in (None, each.partition_index)
                else each
                for each in topic.partitions
            ),
        )
        if match.topic in (None, topic.topic or names.get(bytes(topic.topic_id)))
        else topic
        for topic in response.responses
    )
    return replace(reply, response=replace(response, responses=topics))


def _damaged(records: bytes | None) -> bytes | None:
    """Return the batches with one bit flipped in the checksummed part of the first."""
    if records is None or len(records) <= _CHECKSUMMED_FROM:
        return records
    damaged = bytearray(records)
    damaged[_CHECKSUMMED_FROM] ^= 1
    return bytes(damaged)
