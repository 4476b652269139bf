"""Our ``Consumer`` and ``Producer``, with the few extra methods that aiokafka's classes need."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from functools import partial
from typing import Any, Final

from kip848_client.aiokafka._client import LinkedClient
from kip848_client.aiokafka._request_shims import RequestShim
from kip848_client.aiokafka._through_client import ClientTransport, SendHooks
from kip848_client.consumer import Caller, Consumer, Record, connections
from kip848_client.core.member import LeaveMode, MemberState
from kip848_client.core.ports import TopicView
from kip848_client.core.produce import NO_PRODUCER, ProducerId, State
from kip848_client.core.types import TopicPartition
from kip848_client.errors import ConfigError, Kip848Error, LocalProtocolError
from kip848_client.producer import Producer, Receipts
from kip848_client.producer import connections as producer_connections
from kip848_client.runtime.net._transport import KafkaTransport

__all__ = ["ConsumerAdapter", "ProducerAdapter"]

_INTERVALS: Final = 1.5
"""In heartbeats: how long a start waits for partitions that other members must give up."""
_NOTHING_INTERVALS: Final = 3.0
"""In heartbeats: how long to wait before reporting that there are no partitions for us. Others
learn of us by one heartbeat, we learn by another one what they gave up, and they may be busy in
between."""
_LOOK_S: Final = 0.1
"""How often the start checks for errors, too."""
_PATIENCE_S: Final = 5.0
"""The least wait: others may be busy with partitions that they must give up."""


Known = tuple[frozenset[int], frozenset[int]]


class ConsumerAdapter(Consumer[Any, Any]):
    """Does the work of one ``kip848_client.aiokafka.AIOKafkaConsumer``."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        if self.decoding.is_async:
            raise ConfigError(
                "deserializers are not awaited, as in aiokafka, so records would hold coroutines: "
                "use plain functions (kip848_client.Consumer awaits others)"
            )

    def go_through(
        self,
        client: LinkedClient,
        instead: Callable[[Kip848Error], Exception],
        to_coordinator: Callable[[RequestShim], Awaitable[object]],
    ) -> None:
        """Before the start: set the methods that send requests."""
        hooks = SendHooks(client, instead, self._names, to_coordinator)
        self._network = partial(connections, kind=partial(ClientTransport, hooks))

    def _names(self) -> TopicView:
        assert self._engine is not None, "requests are sent only after the start"
        return self._engine.topics

    @property
    def coordinator_node(self) -> int | None:
        """The broker that coordinates the group, as far as it is known."""
        transport = None if self._engine is None else self._engine.transport
        return transport.coordinator_node if isinstance(transport, ClientTransport) else None

    @property
    def transport(self) -> KafkaTransport:
        """The connections of a running consumer."""
        return self._run().transport

    @property
    def is_ending(self) -> bool:
        """Whether ``stop`` was called."""
        return self._runtime.was_started and self._runtime.was_stopped

    @property
    def is_over(self) -> bool:
        """Whether it is stopped completely."""
        return self._runtime.was_started and self._runtime.is_closed

    async def stop_for(self, caller: Caller) -> None:
        """``stop`` on behalf of that task."""
        await self._stop(LeaveMode.DEFAULT, None, caller, done=True)

    def check_free(self) -> None:
        """Raise if nothing can be subscribed."""
        if self._engine is not None:
            self._run()
        if self._manual is not None:
            raise LocalProtocolError("partitions were assigned manually; call unsubscribe() first")

    def check(self) -> None:
        """Raise the error that ended the consumer, if there is one."""
        if self._engine is not None:
            self._engine.errors.check_fatal()

    async def next(self) -> Record[Any, Any]:
        """The next record of any partition. Like ``__anext__``, but raises ``ConsumerClosed``."""
        record = self._take()
        if record is not None:
            return record
        return await self._run().poller.next()

    async def settled(self, timeout_s: float) -> None:
        """Wait until our assignment is complete. Without partitions, wait for another one and a
        half heartbeat intervals: other members may have to give some up, and learn that by their
        next heartbeat. Raises what ends the consumer meanwhile."""
        engine = self._run()
        group_driver = engine.group_driver
        if group_driver is None:
            return
        now = asyncio.get_running_loop().time

        async def until(done: Callable[[], bool], deadline_s: float) -> None:
            # A listener that failed is called again only when records are requested.
            while not (done() or engine.errors) and now() < deadline_s:
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(_LOOK_S, deadline_s - now())):
                        await group_driver.change()
                self._run()

        deadline_s = now() + timeout_s
        await until(lambda: group_driver.member.state is MemberState.STABLE, deadline_s)
        patient_s = now() + max(_PATIENCE_S, self._intervals_s(_INTERVALS))
        await until(lambda: bool(self.assignment()), min(deadline_s, patient_s))
        self._run()

    @property
    def nothing_after_s(self) -> float:
        """How long other members may take to give up partitions; after that we have none."""
        return max(_PATIENCE_S, self._intervals_s(_NOTHING_INTERVALS))

    def _intervals_s(self, count: float) -> float:
        member = self.member
        return 0.0 if member is None else count * member.heartbeat_interval_ms / 1000

    def hold(self, *, everything: bool) -> None:
        """Deliver no records of assigned partitions, or resume."""
        if self._engine is not None:
            self._engine.fetchable.hold(everything=everything)

    def greet_listener(self) -> None:
        """Call the listener for partitions that are already assigned, if there are any."""
        group_driver = None if self._engine is None else self._engine.group_driver
        if group_driver is not None and not self.is_ending:
            group_driver.greet_listener()

    async def until_ours(
        self, partitions: Collection[Any], timeout_s: float = math.inf
    ) -> list[Any]:
        """Wait until we own at least one of the partitions; returns those that we own, none after
        the timeout. The call counts as a poll, and as the end of the records before. Raises like
        ``getone``."""
        self._mark_done()
        engine = self._run()
        group_driver = engine.group_driver
        now = asyncio.get_running_loop().time
        deadline_s = now() + timeout_s
        ours = self._of_ours(partitions)
        if ours:
            return ours
        changed = asyncio.Event().wait if group_driver is None else group_driver.change
        if group_driver is not None:
            group_driver.polled(waiting=True)
        try:
            while not ours and now() < deadline_s:
                engine.errors.check()
                with suppress(TimeoutError):
                    async with asyncio.timeout(min(_LOOK_S, deadline_s - now())):
                        await changed()
                self._run()
                ours = self._of_ours(partitions)
        finally:
            if group_driver is not None:
                group_driver.poll_ended()
        return ours

    def _of_ours(self, partitions: Collection[Any]) -> list[Any]:
        assigned = self.assignment()
        return [tp for tp in partitions if tp in assigned]

    def buffered(self) -> dict[TopicPartition, int]:
        """The fetched bytes that wait for the application, for partitions with records that it may
        get."""
        if self._engine is None:
            return {}
        partitions = self._engine.core.snapshot().partitions
        return {
            tp: each.buffered_bytes
            for tp, each in partitions.items()
            if each.slices
            and "limited" not in each.why_not
            and (each.consumed is None or each.slices[-1][1] > each.consumed)
        }

    def may_commit(self, tp: TopicPartition) -> bool:
        """Whether we own, or owned, the partition. The coordinator decides about the latter."""
        engine = self._engine
        return tp in self.assignment() or (engine is not None and engine.tracker.was_ours(tp))

    def is_paused(self, tp: TopicPartition) -> bool:
        """Whether the application paused the partition."""
        return self._engine is not None and tp in self._engine.core.paused

    def position_now(self, tp: TopicPartition) -> int | None:
        """The offset of the next record to deliver, if it is known."""
        return None if self._engine is None else self._engine.core.position(tp)

    def may_name(self, group_id: str, servers: object) -> bool:
        """Whether this is a running consumer of the group, in this event loop, whose offsets are
        committed by transactions: it does not commit by itself."""
        config = self._config
        if config.group_id != group_id or config.bootstrap_servers != servers:
            return False
        if config.enable_auto_commit or self.is_ending:
            return False
        try:
            self._run()
        except Kip848Error:
            return False
        return True


class ProducerAdapter(Producer[Any, Any]):
    """Does the work of one ``kip848_client.aiokafka.AIOKafkaProducer``."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._kept: dict[str, tuple[object, object, Known]] = {}
        """By topic: the last known route, and the partitions that follow from it."""

    def go_through(
        self,
        client: LinkedClient,
        instead: Callable[[Kip848Error], Exception],
        to_leader: Callable[[int, RequestShim], Awaitable[object]],
    ) -> None:
        """Before the start: set the methods that send requests."""
        hooks = SendHooks(client, instead, self._names, None, to_leader)
        self._network = partial(producer_connections, kind=partial(ClientTransport, hooks))

    def _names(self) -> TopicView:
        assert self._engine is not None, "requests are sent only after the start"
        return self._engine.topics

    def tell(self, receipts: Receipts) -> None:
        """Before the start: set what the futures of records return."""
        self._receipts = receipts

    @property
    def transport(self) -> KafkaTransport:
        """The connections of a running producer."""
        return self._run().transport

    @property
    def is_ending(self) -> bool:
        """Whether ``stop`` was called."""
        return self._runtime.was_started and self._runtime.was_stopped

    @property
    def transaction_state(self) -> State | None:
        """The state of a transactional producer."""
        return None if self._engine is None else self._engine.core.transaction_state

    @property
    def who(self) -> ProducerId:
        """The producer id and epoch used for writing."""
        return NO_PRODUCER if self._engine is None else self._engine.core.who

    @property
    def sending_task(self) -> asyncio.Task[None] | None:
        """The sending task, after the start."""
        return self._runtime.task

    def partitions_known(self, topic: str) -> Known | None:
        """All partitions of a topic, and those with a leader, if the topic is known."""
        route = None if self._engine is None else self._engine.core.routes.get(topic)
        if route is None:
            return None
        kept = self._kept.get(topic)
        if kept is not None and kept[0] is route.partitions and kept[1] is route.led:
            return kept[2]
        every = frozenset(range(len(route.partitions)))
        known = (every, frozenset(tp.partition for tp in route.led))
        self._kept[topic] = (route.partitions, route.led, known)
        return known
