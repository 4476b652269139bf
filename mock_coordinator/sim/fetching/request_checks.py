"""What must hold of what brokers are asked.

- ``OneRequest``: at most one fetch a node is under way, none is sent while the node has said that
  it is throttled, none is empty.
- ``Session``: a session has what is wanted and nothing else, so every record sent has a reader,
  and both sides agree on it.
- ``Sane``: topics go by an id that is not zero, offsets are not negative, leader epochs are known
  and never go back.
- ``NoStorm``: while nothing moves, a node is asked at a rate that pauses explain, and so are
  the brokers that answer for metadata and offsets.
- ``NoStarvation``: what has data is served within two rounds of its neighbours.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from kip848_client.core.cluster import LearnLeaders
from kip848_client.core.fetch._commands import ListOffsets, SendFetch
from kip848_client.core.fetch._model import FetchAnswer, Wanted
from kip848_client.core.types import ZERO_TOPIC_ID, TopicIdPartition
from kip848_client.core.wire.messages.fetch import FetchRequest
from mock_coordinator.sim.invariants import Violation
from mock_coordinator.sim.trace import shown_partitions

__all__ = ["NoStarvation", "NoStorm", "OneRequest", "RequestChecks", "Sane", "Session"]

_WINDOW_MS: Final = 1_000
_FRUITLESS_MAX: Final = 25
"""In a second: what waits for 100 ms is asked ten times, and elections may lie in between."""
_QUESTIONS_MAX: Final = 25
_IDS_SINCE: Final = 13


class OneRequest:
    """One request a node, and it is not empty."""


class Session:
    """A session has what is wanted."""


class Sane:
    """Every request makes sense."""


class NoStorm:
    """No broker gets the same request again and again."""


class NoStarvation:
    """Every wait ends."""


@dataclass(slots=True)
class _Node:
    told: dict[TopicIdPartition, Wanted] = field(default_factory=dict[TopicIdPartition, Wanted])
    """What the broker has been asked for, in this request and before."""
    before: dict[TopicIdPartition, Wanted] = field(default_factory=dict[TopicIdPartition, Wanted])
    """What it had been asked for before this request."""
    open: int | None = None
    sent: tuple[int, int] = (0, 0)
    """Session and epoch of the newest request."""
    expected: tuple[int, int] | None = None
    """Session and epoch that the broker waits for, if that can be known."""
    throttled_until_ms: int = 0
    fruitless: deque[int] = field(default_factory=deque[int])
    starving: dict[TopicIdPartition, int] = field(default_factory=dict[TopicIdPartition, int])
    served: dict[TopicIdPartition, int] = field(default_factory=dict[TopicIdPartition, int])
    """The offset at which a partition was last given data."""


@dataclass(slots=True)
class RequestChecks:
    """Follows one core. ``wanted`` says whether a partition may be fetched now, ``has_data``
    whether its log has something at this offset for the user."""

    wanted: Callable[[TopicIdPartition], bool]
    has_data: Callable[[TopicIdPartition, int], bool]
    requests: int = 0
    _nodes: dict[int, _Node] = field(default_factory=dict[int, _Node])
    _epochs: dict[TopicIdPartition, int] = field(default_factory=dict[TopicIdPartition, int])
    """The highest leader epoch that was ever sent."""
    _open: dict[int, int] = field(default_factory=dict[int, int])
    """Fetches under way, and their nodes."""
    _questions: dict[str, deque[int]] = field(default_factory=dict[str, deque[int]])

    def arrived(self, request: FetchRequest, version: int) -> None:
        """A broker reads a request."""
        if version < _IDS_SINCE:
            raise Violation(Sane, f"version {version} names topics")
        for topic in request.topics:
            if bytes(topic.topic_id) == ZERO_TOPIC_ID:
                raise Violation(Sane, "a topic without an id is fetched")
            for row in topic.partitions:
                if row.fetch_offset < 0 or row.current_leader_epoch < 0:
                    raise Violation(Sane, f"{row} is fetched")
        if any(bytes(each.topic_id) == ZERO_TOPIC_ID for each in request.forgotten_topics_data):
            raise Violation(Sane, "a topic without an id is forgotten")

    def moved(self) -> None:
        """Something else happened than answers and timers: there is a reason to ask now."""
        for node in self._nodes.values():
            node.fruitless.clear()
        self._questions.clear()

    def begin_anew(self) -> None:
        """All connections end: what is under way does not count any more."""
        self._nodes.clear()
        self._open.clear()
        self.moved()

    # -- fetches -----------------------------------------------------------------------------

    def sent(self, now_ms: int, command: SendFetch) -> None:
        """A fetch goes out."""
        self.requests += 1
        node = self._nodes.setdefault(command.node, _Node())
        intent = command.intent
        if node.open is not None:
            raise Violation(OneRequest, f"node {command.node} is asked while it is being asked")
        if now_ms < node.throttled_until_ms:
            left_ms = node.throttled_until_ms - now_ms
            raise Violation(OneRequest, f"node {command.node} is throttled for {left_ms} ms more")
        node.open = command.fetch
        node.sent = (intent.session_id, intent.session_epoch)
        if intent.session_epoch > 0 and node.sent != node.expected:
            raise Violation(Session, f"{node.sent} is sent, and {node.expected} is expected")
        self._open[command.fetch] = command.node
        node.before = node.told
        node.told = {} if intent.session_epoch <= 0 else dict(node.told)
        if intent.session_epoch <= 0 and intent.forget:
            raise Violation(Session, f"{intent.forget} is forgotten in a full fetch")
        for want in intent.add:
            if want.leader_epoch < self._epochs.get(want.key, 0):
                raise Violation(Sane, f"{want} goes back from {self._epochs[want.key]}")
            self._epochs[want.key] = want.leader_epoch
        for key in intent.forget:
            node.told.pop(key, None)
        node.told.update({want.key: want for want in intent.add})
        if not node.told:
            raise Violation(OneRequest, f"node {command.node} is asked for nothing")
        unwanted = [key for key in node.told if not self.wanted(key)]
        if unwanted:
            shown = shown_partitions(unwanted)
            raise Violation(Session, f"node {command.node} is asked for {shown}, which is not read")
        node.fruitless.append(now_ms)
        _limit(now_ms, node.fruitless, _FRUITLESS_MAX, f"fetches from node {command.node}")

    def lost(self, fetch: int, *, sent: bool) -> None:
        """No answer came. ``sent``: the broker may know of it."""
        node_id = self._open.pop(fetch, None)
        if node_id is None:
            return
        node = self._nodes[node_id]
        node.open = None
        if sent:
            node.expected = None
        else:
            node.told = node.before

    def answered(self, now_ms: int, fetch: int, answer: FetchAnswer) -> None:
        """An answer came, maybe once more."""
        node_id = self._open.pop(fetch, None)
        if node_id is None:
            return
        node = self._nodes[node_id]
        node.open = None
        node.throttled_until_ms = now_ms + answer.throttle_time_ms
        _, epoch = node.sent
        goes_on = answer.error_code == 0 and answer.session_id > 0 and epoch >= 0
        node.expected = (answer.session_id, epoch + 1) if goes_on else None
        for each in answer.partitions:
            want = node.told.get(each.key)
            if want is not None and each.records and node.served.get(each.key) != want.offset:
                node.served[each.key] = want.offset
                node.fruitless.clear()
        if answer.throttle_time_ms:
            node.fruitless.clear()
        if answer.error_code == 0 and not answer.throttle_time_ms:
            self._look_for_starving(node_id, node, answer)

    def _look_for_starving(self, node_id: int, node: _Node, answer: FetchAnswer) -> None:
        served = {each.key for each in answer.partitions if each.records}
        refused = {each.key for each in answer.partitions if each.error_code or each.diverging}
        if not served:
            return
        starving: dict[TopicIdPartition, int] = {}
        for key, want in node.told.items():
            if key in served | refused or not self.has_data(key, want.offset):
                continue
            starving[key] = node.starving.get(key, 0) + 1
            if starving[key] > 2 * len(node.told) + 2:
                shown = shown_partitions([key])
                raise Violation(NoStarvation, f"{shown} is not served by node {node_id}")
        node.starving = starving

    # -- questions ---------------------------------------------------------------------------

    def asked(self, now_ms: int, command: LearnLeaders | ListOffsets) -> None:
        """Metadata, or offsets, are asked for."""
        what = type(command).__name__
        if isinstance(command, ListOffsets):
            what += f" from node {command.node}"
        times = self._questions.setdefault(what, deque())
        times.append(now_ms)
        _limit(now_ms, times, _QUESTIONS_MAX, what)


def _limit(now_ms: int, times: deque[int], most: int, what: str) -> None:
    while times and times[0] <= now_ms - _WINDOW_MS:
        times.popleft()
    if len(times) > most:
        raise Violation(NoStorm, f"{len(times)} {what} in a second, and nothing moves")
