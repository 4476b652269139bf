"""Our ``Consumer`` and ``Producer``, with the little more that aiokafka-shaped ones ask of them."""

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
from kip848_client.core.produce import NOBODY, ProducerId, State
from kip848_client.core.types import TopicPartition
from kip848_client.errors import ConfigError, Kip848Error, LocalProtocolError
from kip848_client.producer import Producer, Receipts
from kip848_client.producer import connections as producer_connections
from kip848_client.runtime.net._transport import KafkaTransport

__all__ = ["ConsumerAdapter", "ProducerAdapter"]

_INTERVALS: Final = 1.5
"""Of heartbeats: how long a start waits for partitions that others have to give up."""
_NOTHING_INTERVALS: Final = 3.0
"""Until it is said that there are none for us: others hear of us with one heartbeat, we with
another one of what they gave up, and in between they may be busy."""
_LOOK_S: Final = 0.1
"""How often the start looks for errors, too."""
_PATIENCE_S: Final = 5.0
"""At least: others may be busy with what they have to give up."""


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
        """Before the start: by which methods requests go out."""
        hooks = SendHooks(client, instead, self._names, to_coordinator)
        self._network = partial(connections, kind=partial(ClientTransport, hooks))

    def _names(self) -> TopicView:
        assert self._engine is not None, "only what was started sends"
        return self._engine.topics

    @property
    def coordinator_node(self) -> int | None:
        """The broker that coordinates the group, as far as it is known."""
        transport = None if self._engine is None else self._engine.transport
        return transport.coordinator_node if isinstance(transport, ClientTransport) else None

    @property
    def transport(self) -> KafkaTransport:
        """The connections of a consumer that runs."""
        return self._run().transport

    @property
    def is_ending(self) -> bool:
        """Whether ``stop`` was called."""
        return self._runtime.was_started and self._runtime.was_stopped

    @property
    def is_over(self) -> bool:
        """Whether it was stopped to the end."""
        return self._runtime.was_started and self._runtime.is_closed

    async def stop_for(self, caller: Caller) -> None:
        """``stop``, called by that task."""
        await self._stop(LeaveMode.DEFAULT, None, caller, done=True)

    def check_free(self) -> None:
        """Raise where no subscription can be made."""
        if self._engine is not None:
            self._run()
        if self._manual is not None:
            raise LocalProtocolError("partitions were assigned by hand; unsubscribe() first")

    def check(self) -> None:
        """Raise what ended the consumer, if something did."""
        if self._engine is not None:
            self._engine.errors.check_fatal()

    async def next(self) -> Record[Any, Any]:
        """The next record of any partition. As ``__anext__``, but it raises ``ConsumerClosed``."""
        record = self._take()
        if record is not None:
            return record
        return await self._run().poller.next()

    async def settled(self, timeout_s: float) -> None:
        """Wait until the group has nothing for us to do. Where that is without partitions, others
        may be about to give some up, of which they hear with their next heartbeat: then for one and
        a half intervals more. Raises what ends the consumer meanwhile."""
        engine = self._run()
        group_driver = engine.group_driver
        if group_driver is None:
            return
        now = asyncio.get_running_loop().time

        async def until(done: Callable[[], bool], deadline_s: float) -> None:
            # A listener that has failed is called again when records are asked for, not before.
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
        """How long others may take to give something up, until we have nothing for good."""
        return max(_PATIENCE_S, self._intervals_s(_NOTHING_INTERVALS))

    def _intervals_s(self, count: float) -> float:
        member = self.member
        return 0.0 if member is None else count * member.heartbeat_interval_ms / 1000

    def hold(self, *, everything: bool) -> None:
        """Hand out nothing of what the group has assigned, or go on where it was."""
        if self._engine is not None:
            self._engine.fetchable.hold(everything=everything)

    def greet_listener(self) -> None:
        """Let the listener hear of what is assigned already, if the group has assigned anything."""
        group_driver = None if self._engine is None else self._engine.group_driver
        if group_driver is not None and not self.is_ending:
            group_driver.greet_listener()

    async def until_ours(
        self, partitions: Collection[Any], timeout_s: float = math.inf
    ) -> list[Any]:
        """Those of the partitions that are ours, as soon as one is; none when the time is over.
        Who calls this is done with what it got, and alive. Raises as ``getone``."""
        self._came_back()
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
        """How many bytes of a partition were fetched and wait for the application, where there are
        records among them that it may get."""
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
        """Whether the partition is ours, or was: then the coordinator decides."""
        engine = self._engine
        return tp in self.assignment() or (engine is not None and engine.tracker.was_ours(tp))

    def is_paused(self, tp: TopicPartition) -> bool:
        """Whether the application paused the partition."""
        return self._engine is not None and tp in self._engine.core.paused

    def position_now(self, tp: TopicPartition) -> int | None:
        """The offset of the next record to be handed out, if it is known."""
        return None if self._engine is None else self._engine.core.position(tp)

    def may_name(self, group_id: str, servers: object) -> bool:
        """Whether this is, here and now, a consumer of the group whose transactions others commit:
        one that does not commit by itself."""
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
        """By topic: what its route was when it was looked at last, and what that means."""

    def go_through(
        self,
        client: LinkedClient,
        instead: Callable[[Kip848Error], Exception],
        to_leader: Callable[[int, RequestShim], Awaitable[object]],
    ) -> None:
        """Before the start: by which methods requests go out."""
        hooks = SendHooks(client, instead, self._names, None, to_leader)
        self._network = partial(producer_connections, kind=partial(ClientTransport, hooks))

    def _names(self) -> TopicView:
        assert self._engine is not None, "only what was started sends"
        return self._engine.topics

    def tell(self, receipts: Receipts) -> None:
        """Before the start: what the futures of records are told."""
        self._receipts = receipts

    @property
    def transport(self) -> KafkaTransport:
        """The connections of a producer that runs."""
        return self._run().transport

    @property
    def is_ending(self) -> bool:
        """Whether ``stop`` was called."""
        return self._runtime.was_started and self._runtime.was_stopped

    @property
    def transaction_state(self) -> State | None:
        """Where a transactional producer is."""
        return None if self._engine is None else self._engine.core.transaction_state

    @property
    def who(self) -> ProducerId:
        """In whose name is written."""
        return NOBODY if self._engine is None else self._engine.core.who

    @property
    def sending_task(self) -> asyncio.Task[None] | None:
        """The task that sends, from the start on."""
        return self._runtime.task

    def partitions_known(self, topic: str) -> Known | None:
        """All partitions of a topic and those with a leader, if it is known."""
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
