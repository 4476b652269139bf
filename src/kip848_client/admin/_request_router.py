"""Sends an admin's requests: to any broker, to each, to coordinators and to leaders, until there is
an answer or the deadline has passed. The rules are in ``_retry_rounds``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Generator, Mapping
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from kip848_client.admin._failures import named
from kip848_client.admin.core._model import Node
from kip848_client.admin.core._retry_rounds import ANYONE, DeadlineExceeded, Refusal, Rounds
from kip848_client.core.ports import Clock, NotSent
from kip848_client.core.types import ANY_VERSION, TopicPartition, VersionLimits, Wait
from kip848_client.core.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kip848_client.core.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import (
    CoordinatorUnavailable,
    Kip848Error,
    RequestTimedOut,
    TransportError,
    refusal,
)
from kip848_client.runtime._backoff import Backoff
from kip848_client.runtime._loop_watch import LoopWatch
from kip848_client.runtime._waits import Waits
from kip848_client.runtime.net._transport import KafkaTransport
from kip848_client.runtime.random import CHANCE

__all__ = ["GROUP_KEY", "TRANSACTION_KEY", "RequestRouter", "Send"]

_log = logging.getLogger("kip848_client")

T = TypeVar("T")
R = TypeVar("R")

_FIND_VERSIONS: Final[VersionLimits] = (4, 32767)
"""Version 4 takes a list of keys (KIP-699)."""
GROUP_KEY: Final = 0
TRANSACTION_KEY: Final = 1
_LEADERLESS: Final = -1
_NO_EPOCH: Final = -1
_NO_BROKERS: Final = "no broker names the brokers of the cluster"

Send = Callable[[Any], Awaitable[Any]]
"""Send a request to any broker; the first answer is returned."""

Asked = Callable[[int, tuple[T, ...]], Awaitable[Mapping[T, R | Refusal]]]
"""Ask a broker about some targets; returns its answer for each."""


def _in_vain(target: object, last: Kip848Error | None) -> Kip848Error:
    said = "no broker gave a reason" if last is None else str(last)
    error = RequestTimedOut(f"{named(target)}: no answer within the time allowed: {said}")
    error.__cause__ = last
    return error


def _no_coordinator(kind: str) -> Callable[[str, Kip848Error | None], Kip848Error]:
    def make(name: str, last: Kip848Error | None) -> Kip848Error:
        said = "no broker gave a reason" if last is None else str(last)
        error = CoordinatorUnavailable(
            f"the coordinator of {kind} {name!r} did not answer within the time allowed: {said}"
        )
        error.__cause__ = last
        return error

    return make


class RequestRouter:
    """The common parts of all requests of one admin."""

    def __init__(
        self, transport: KafkaTransport, clock: Clock, backoff: Backoff, request_timeout_ms: int
    ) -> None:
        self._transport = transport
        self._clock = clock
        self._backoff = backoff
        self._request_timeout_ms = request_timeout_ms
        self._coordinators: dict[tuple[int, str], int] = {}
        self._nodes: dict[int, Node] = {}
        self._names_none = False
        """Whether the last metadata had no brokers."""

    def deadline_ms(self, timeout_ms: float) -> int:
        """Return the deadline of a call that begins now."""
        return self._clock.now_ms() + int(timeout_ms)

    def left_ms(self, deadline_ms: int) -> int:
        """Return the timeout of a request now: at most the time left, and at least 1 ms."""
        left_ms = deadline_ms - self._clock.now_ms()
        return max(1, min(left_ms, self._request_timeout_ms))

    def node(self, node_id: int) -> Node:
        """Return a known broker."""
        return self._nodes[node_id]

    # -- one broker ------------------------------------------------------------------------------

    async def to(
        self,
        node_id: int,
        request: Any,
        deadline_ms: int,
        versions: VersionLimits = ANY_VERSION,
    ) -> Any:
        """Ask one broker, once."""
        return await self._transport.broker(
            node_id, request, versions=versions, timeout_ms=self.left_ms(deadline_ms)
        )

    async def any_broker(self, request: Any, deadline_ms: int) -> Any:
        """Ask any broker until one answers. Raises the last error at the deadline; one that only
        reports the deadline is replaced by the one before."""
        failures, before = 0, None
        why = "no broker has answered"
        with self._telling(lambda: {"a broker that answers": why}):
            while True:
                asked = self._transport.any_broker(request, timeout_ms=self.left_ms(deadline_ms))
                try:
                    return await self._in_time(asked, deadline_ms)
                except TransportError as err:
                    failures += 1
                    why = str(err)
                    if not await self._pause(failures, deadline_ms):
                        if before is not None and isinstance(err, RequestTimedOut):
                            raise before from err
                        raise
                    before = err

    @contextmanager
    def _telling(self, found: Callable[[], Mapping[str, str]]) -> Generator[None]:
        """Log waits of more than a second: ``found`` returns the reasons."""
        waits, since_ms = Waits(), self._clock.now_ms()

        def look(reasons: Mapping[str, str]) -> None:
            still = {what: Wait(why, since_ms) for what, why in reasons.items()}
            for level, line in waits.look(self._clock.now_ms(), still, again=False):
                _log.log(level, "admin: %s", line)

        watch = LoopWatch(self._clock, lambda _late_ms: look(found()))
        look(found())
        watch.start()
        try:
            yield
        finally:
            watch.stop()
        look({})

    async def _in_time(self, asked: Awaitable[R], deadline_ms: int) -> R:
        """Wait at most until the deadline: opening a connection takes time as well."""
        try:
            async with asyncio.timeout(self._clock.left_s(deadline_ms)):
                return await asked
        except TimeoutError as err:
            raise DeadlineExceeded("no broker has answered within the time allowed") from err

    async def _pause(self, failures: int, deadline_ms: int) -> bool:
        """Pause before another attempt; returns false if there is no time for one."""
        pause_s = self._backoff.pause_s(failures)
        if self._clock.left_s(deadline_ms) <= pause_s:
            return False
        await asyncio.sleep(pause_s)
        return True

    # -- all brokers -----------------------------------------------------------------------------

    async def brokers(self, deadline_ms: int) -> tuple[Node, ...]:
        """Return the brokers of the cluster, at least one: a broker that has just started may know
        none for a moment."""
        request = MetadataRequest(topics=(), allow_auto_topic_creation=False)
        failures = 0
        while True:
            try:
                answer = await self.any_broker(request, deadline_ms)
            except RequestTimedOut as err:
                if failures:
                    raise NotSent(_NO_BROKERS) from err
                raise
            found = self._learn(answer)
            self._names_none = not found
            if found:
                return found
            failures += 1
            if not await self._pause(failures, deadline_ms):
                raise NotSent(_NO_BROKERS)

    def _learn(self, answer: MetadataResponse) -> tuple[Node, ...]:
        nodes = tuple(
            Node(each.node_id, each.host, each.port, each.rack) for each in answer.brokers
        )
        self._nodes |= {each.node_id: each for each in nodes}
        if nodes:
            self._transport.learn_brokers((each.node_id, each.host, each.port) for each in nodes)
        return nodes

    async def of_each(
        self, ask: Asked[int, R], deadline_ms: int
    ) -> tuple[dict[int, R], dict[int, Kip848Error]]:
        """Ask each broker of the cluster; returns the answers and the errors by node id."""
        rounds: Rounds[int, R] = Rounds(each.node_id for each in await self.brokers(deadline_ms))

        async def find(targets: tuple[int, ...]) -> None:
            there = {each.node_id for each in await self.brokers(deadline_ms)}
            for each in targets:
                if each in there:
                    rounds.found(each, each)
                else:
                    rounds.fail([each], NotSent(f"broker {each} has left the cluster"))

        await self._play(rounds, find, ask, deadline_ms)
        return rounds.done, rounds.failed

    async def of_the_cluster(
        self,
        names: Collection[str],
        ask: Callable[[tuple[str, ...]], Any],
        read: Callable[[Any], Mapping[str, R | Refusal]],
        deadline_ms: int,
        done_before: Mapping[int, R] | None = None,
    ) -> tuple[dict[str, R], dict[str, Kip848Error]]:
        """Send a change to any broker, which forwards it to the controller: ``ask`` builds the
        request for some names, ``read`` parses the answer."""
        rounds: Rounds[str, R] = Rounds(names, done_before)
        in_vain: set[int] = set()

        async def find(targets: tuple[str, ...]) -> None:
            # Not the transport's ``any``: after a lost answer it would ask another broker by
            # itself, hiding that the first one may have made the change.
            there = [each.node_id for each in await self.brokers(deadline_ms)]
            anyone = CHANCE.choice([each for each in there if each not in in_vain] or there)
            for each in targets:
                rounds.found(each, anyone)

        async def put(node: int, targets: tuple[str, ...]) -> Mapping[str, R | Refusal]:
            in_vain.add(node)
            answer = await self.to(node, ask(targets), deadline_ms)
            in_vain.discard(node)
            return read(answer)

        await self._play(rounds, find, put, deadline_ms)
        return rounds.done, rounds.failed

    async def of_anyone(
        self,
        names: Collection[str],
        ask: Callable[[Send, tuple[str, ...]], Awaitable[Mapping[str, R | Refusal]]],
        deadline_ms: int,
    ) -> tuple[dict[str, R], dict[str, Kip848Error]]:
        """Look up something that every broker knows, from the first one that answers."""
        rounds: Rounds[str, R] = Rounds(names)

        async def find(targets: tuple[str, ...]) -> None:
            await self.brokers(deadline_ms)  # a broker that knows no brokers knows no topics either
            for each in targets:
                rounds.found(each, ANYONE)

        async def send(request: Any) -> Any:
            return await self._transport.any_broker(request, timeout_ms=self.left_ms(deadline_ms))

        async def put(_: int, targets: tuple[str, ...]) -> Mapping[str, R | Refusal]:
            return await ask(send, targets)

        await self._play(rounds, find, put, deadline_ms)
        return rounds.done, rounds.failed

    # -- responsible brokers --------------------------------------------------------------------

    async def of_coordinators(
        self,
        names: Collection[str],
        ask: Asked[str, R],
        deadline_ms: int,
        done_before: Mapping[int, R] | None = None,
        key_type: int = GROUP_KEY,
    ) -> tuple[dict[str, R], dict[str, Kip848Error]]:
        """Ask the coordinators of groups, or of transactional ids; returns the answers and the
        errors by name."""
        rounds: Rounds[str, R] = Rounds(names, done_before)
        for name in names:
            if (key_type, name) in self._coordinators:
                rounds.found(name, self._coordinators.pop((key_type, name)))

        async def find(targets: tuple[str, ...]) -> None:
            request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=targets)
            answer = await self._transport.any_broker(
                request, versions=_FIND_VERSIONS, timeout_ms=self.left_ms(deadline_ms)
            )
            self._found(rounds, answer)

        kind = "group" if key_type == GROUP_KEY else "transactional id"
        asked_of = await self._play(rounds, find, ask, deadline_ms, _no_coordinator(kind))
        self._coordinators |= {(key_type, name): asked_of[name] for name in rounds.done}
        return rounds.done, rounds.failed

    def _found(self, rounds: Rounds[str, R], answer: FindCoordinatorResponse) -> None:
        for each in answer.coordinators:
            if each.error_code:
                error = refusal(each.error_code, each.error_message, "FindCoordinator")
                rounds.refused(each.key, error)
                continue
            known = self._nodes.get(each.node_id)
            rack = None if known is None else known.rack
            self._nodes[each.node_id] = Node(each.node_id, each.host, each.port, rack)
            self._transport.add_brokers([(each.node_id, each.host, each.port)])
            rounds.found(each.key, each.node_id)

    async def of_leaders(
        self,
        partitions: Collection[TopicPartition],
        ask: Asked[TopicPartition, R],
        deadline_ms: int,
        epochs: dict[TopicPartition, int] | None = None,
    ) -> tuple[dict[TopicPartition, R], dict[TopicPartition, Kip848Error]]:
        """Ask the leaders of partitions; as ``of_coordinators``. ``epochs`` is filled with the
        leader epochs of the request: a broker with another one refuses."""
        rounds: Rounds[TopicPartition, R] = Rounds(
            partitions, not_there_yet=frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION})
        )

        async def find(targets: tuple[TopicPartition, ...]) -> None:
            topics = sorted({tp.topic for tp in targets})
            request = MetadataRequest(
                topics=tuple(MetadataRequestTopic(name=each) for each in topics),
                allow_auto_topic_creation=False,
            )
            answer = await self._transport.any_broker(request, timeout_ms=self.left_ms(deadline_ms))
            self._learn(answer)
            for tp, (leader, epoch, code) in _leaders(answer, targets).items():
                if epochs is not None:
                    epochs[tp] = epoch
                if code:
                    rounds.refused(tp, refusal(code, None, "Metadata"))
                else:
                    rounds.found(tp, leader)

        await self._play(rounds, find, ask, deadline_ms)
        return rounds.done, rounds.failed

    async def _play(
        self,
        rounds: Rounds[T, R],
        find: Callable[[tuple[T, ...]], Awaitable[None]],
        ask: Asked[T, R],
        deadline_ms: int,
        in_vain: Callable[[T, Kip848Error | None], Kip848Error] = _in_vain,
    ) -> dict[T, int]:
        """Repeat until there is an answer or an error for each target; returns the broker asked
        last for each."""
        asked_of: dict[T, int] = {}

        def waits() -> dict[str, str]:
            return {f"an answer about {named(each)}": why for each, why in rounds.waits().items()}

        with self._telling(waits):
            await self._play_on(rounds, find, ask, deadline_ms, in_vain, asked_of)
        return asked_of

    async def _play_on(
        self,
        rounds: Rounds[T, R],
        find: Callable[[tuple[T, ...]], Awaitable[None]],
        ask: Asked[T, R],
        deadline_ms: int,
        in_vain: Callable[[T, Kip848Error | None], Kip848Error],
        asked_of: dict[T, int],
    ) -> None:
        failures = 0
        while not rounds.is_over:
            missing = rounds.to_find()
            if missing:
                try:
                    await self._in_time(find(missing), deadline_ms)
                except TransportError as err:
                    is_why = self._names_none and isinstance(err, RequestTimedOut)
                    rounds.not_found(missing, NotSent(_NO_BROKERS) if is_why else err)
            asks = rounds.asks()
            asked_of |= {target: node for node, targets in asks.items() for target in targets}
            async with asyncio.TaskGroup() as tasks:
                for node, targets in asks.items():
                    tasks.create_task(self._put(rounds, ask, node, targets, deadline_ms))
            failures += 1
            if not rounds.is_over and not await self._pause(failures, deadline_ms):
                rounds.give_up(in_vain)

    async def _put(
        self,
        rounds: Rounds[T, R],
        ask: Asked[T, R],
        node: int,
        targets: tuple[T, ...],
        deadline_ms: int,
    ) -> None:
        try:
            answers = await self._in_time(ask(node, targets), deadline_ms)
        except TransportError as err:
            rounds.lost(targets, err)
        except Kip848Error as err:
            rounds.fail(targets, err)
        else:
            rounds.answered(answers, targets, "a broker" if node == ANYONE else f"broker {node}")


def _leaders(
    answer: MetadataResponse, partitions: Collection[TopicPartition]
) -> dict[TopicPartition, tuple[int, int, int]]:
    """Return leader, epoch and error code of each requested partition."""
    codes = {topic.name: topic.error_code for topic in answer.topics}
    leaders = {
        (topic.name, each.partition_index): (each.leader_id, each.leader_epoch)
        for topic in answer.topics
        for each in topic.partitions
    }
    found: dict[TopicPartition, tuple[int, int, int]] = {}
    for tp in partitions:
        code = codes.get(tp.topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        told = leaders.get((tp.topic, tp.partition))
        leader, epoch = (_LEADERLESS, _NO_EPOCH) if told is None else told
        if not code and told is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if not code and leader == _LEADERLESS:
            code = ErrorCode.LEADER_NOT_AVAILABLE
        found[tp] = (leader, epoch, code)
    return found
