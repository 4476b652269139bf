"""Everything that runs between ``start`` and ``stop`` of a producer, wired together.

One asyncio task holds the task group in which every other task of the producer lives.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from kip848_client.config import ProducerConfig
from kip848_client.core.cluster import ClusterChanged, ClusterEvent
from kip848_client.core.ports import Clock
from kip848_client.core.produce import (
    CloseRequested,
    ProducerCore,
    ProduceSettings,
    StartRequested,
)
from kip848_client.errors import Kip848Error, LocalProtocolError, ProducerFailed
from kip848_client.observe.core.metrics import ClientMetrics, connection_rows
from kip848_client.observe.core.watching import ConnectionMeter, ProducerMeter
from kip848_client.producer._deliveries import Receipts
from kip848_client.producer._produce_driver import ProduceDriver
from kip848_client.runtime._backoff import Backoff, jittered
from kip848_client.runtime._closing import Closing, until_open
from kip848_client.runtime._home import Home
from kip848_client.runtime._topics import TopicDirectory
from kip848_client.runtime.client._parts import connection_options, recovery
from kip848_client.runtime.clock import LoopClock
from kip848_client.runtime.net._builder import builder_maker
from kip848_client.runtime.net._transport import KafkaTransport
from kip848_client.runtime.random import CHANCE
from kip848_client.runtime.telemetry import NoTelemetry, TelemetryDriver, telemetry_of

__all__ = ["Engine", "Network", "closed", "connections"]

Network = Callable[[ProducerConfig, Clock], KafkaTransport]

_log = logging.getLogger("kip848_client")

_GRACE_S: Final = 1.0
"""What a step that should have ended gets beyond its time."""
_NOBODYS_TICKET: Final = 0
_RECEIPTS: Final = Receipts()


def closed() -> LocalProtocolError:
    """The one error for a producer that is not there any more."""
    return LocalProtocolError("the producer is closed; make a new one")


def connections(
    config: ProducerConfig, clock: Clock, kind: Callable[..., KafkaTransport] = KafkaTransport
) -> KafkaTransport:
    """Connections to the brokers; none is open yet. (A test gives its own.)"""
    return kind(config.bootstrap_servers, None, connection_options(config), clock)


def produce_settings(config: ProducerConfig) -> ProduceSettings:
    """What the core has to know."""
    return ProduceSettings(
        acks=config.acks,
        idempotent=config.idempotent,
        transactional_id=config.transactional_id,
        transaction_timeout_ms=config.transaction_timeout_ms,
        linger_ms=config.linger_ms,
        batch_bytes=min(config.max_batch_size, config.max_request_size),
        request_bytes=config.max_request_size,
        buffer_bytes=config.buffer_memory,
        in_flight_max=config.max_in_flight_requests_per_connection,
        delivery_timeout_ms=config.deliver_within_ms,
        request_timeout_ms=config.request_timeout_ms,
        retry_backoff_ms=config.retry_backoff_ms,
        retry_backoff_max_ms=config.retry_backoff_max_ms,
        metadata_max_age_ms=config.metadata_max_age_ms,
        metadata_max_idle_ms=config.metadata_max_idle_ms,
    )


class Engine:
    """A running producer."""

    def __init__(
        self,
        config: ProducerConfig,
        network: Network = connections,
        receipts: Receipts = _RECEIPTS,
    ) -> None:
        self.config: Final = config
        self.home: Final = Home("producer")
        self.loop: Final = asyncio.get_running_loop()
        self.clock: Final = LoopClock(self.loop)
        self.transport = network(config, self.clock)
        self.fields: Final = {
            "client_id": config.client_id,
            "transactional_id": config.transactional_id,
        }
        """What every line of the log says beside its text."""
        self.core: Final = ProducerCore(
            produce_settings(config),
            jittered,
            CHANCE.randrange,
            builder_maker(config.compression_type),
        )
        self.topics: Final = TopicDirectory(
            self.transport,
            self.clock,
            self._learnt,
            lambda: self._learnt(ClusterChanged()),
            allow_auto_create=config.allow_auto_create_topics,
            recovery=recovery(config),
            backoff=Backoff(config.retry_backoff_ms, config.retry_backoff_max_ms),
            max_age_ms=config.metadata_max_age_ms,
            fields=self.fields,
        )
        self._metrics: ClientMetrics | None = None
        if config.metrics is not None:
            self._metrics = config.metrics.open({"client-id": config.client_id}, self.clock.now_ms)
        self.producing: Final = ProduceDriver(
            self.core,
            self.transport,
            self.topics,
            self.clock,
            is_transactional=config.transactional_id is not None,
            meter=self._meter(),
            receipts=receipts,
            fields=self.fields,
        )
        self.telemetry: Final = self._telemetry()
        self._opening: asyncio.Task[None] | None = None
        self.task: asyncio.Task[None] | None = None
        """The one."""
        self._closing: Closing | None = None
        self._close_by_ms = 0
        self._is_sending_the_rest = False

    def _meter(self) -> ProducerMeter | None:
        if self._metrics is None:
            return None
        has_id = self.config.transactional_id is not None
        return ProducerMeter(self._metrics, self.core, is_transactional=has_id)

    def _telemetry(self) -> TelemetryDriver | NoTelemetry:
        """What pushes metrics to brokers. Measures connections, too, if anything is measured."""
        config = self.config
        if self._metrics is not None:
            meter = ConnectionMeter(self._metrics, connection_rows.PRODUCER)
            self.transport.measure(meter)
        return telemetry_of(
            self.transport,
            self.clock,
            self._metrics,
            {"transactional_id": config.transactional_id},
            self.fields,
            is_wanted=config.enable_metrics_push,
            is_asked_for="enable_metrics_push" in config.model_fields_set,
            request_timeout_ms=config.request_timeout_ms,
        )

    def _learnt(self, told: ClusterEvent) -> None:
        self.producing.post(told)

    @property
    def is_closing(self) -> bool:
        """Whether ``stop`` was called."""
        return self._closing is not None

    def deadline_ms(self) -> int:
        """Until when a call that begins now may wait."""
        return self.clock.now_ms() + self.config.max_block_ms

    # -- life --------------------------------------------------------------------------------

    async def open(self) -> None:
        """Connect, and with a transactional id become the one producer that has it."""
        self._opening = self.loop.create_task(self._open())
        await until_open(self._opening, lambda: self.is_closing)
        if self._closing is not None:
            raise LocalProtocolError("the producer was stopped while it started; make a new one")

    async def _open(self) -> None:
        await self.transport.bootstrap()
        await self.topics.refresh()
        self.task = self.loop.create_task(self.producing.run(), name="kip848-producer")
        self.task.add_done_callback(self._on_end)
        await self.producing.begun()
        self.producing.keep_fresh()
        if self.config.transactional_id is not None:
            await self.producing.ask_for_features()
        deadline_ms = self.deadline_ms()
        await self.producing.ask(lambda ticket: StartRequested(ticket, deadline_ms))
        self.telemetry.begin()

    def _on_end(self, task: asyncio.Task[None]) -> None:
        if self._closing is not None and task.cancelled():
            return
        cause = None if task.cancelled() else task.exception()
        why = f"failed by a bug of its own: {cause!r}" if cause else "was cancelled from outside"
        error = ProducerFailed(f"the producer {why}; stop() it and make a new one", cause=cause)
        if cause is not None:
            _log.error("%s", error, exc_info=cause, extra=self.fields)
        self.producing.end_waits(error)

    def stop(self, timeout_ms: float) -> Closing:
        """Take nothing more; what returns sends the rest and closes."""
        deadline_ms = self.clock.now_ms() + int(timeout_ms)
        if self._closing is None:
            self._close_by_ms = deadline_ms
            self._closing = Closing(
                (
                    *(self._stop_opening, self._send_the_rest, self._push_metrics),
                    *(self._end_task, self._disconnect, self._unwatch),
                )
            )
        elif deadline_ms < self._close_by_ms:
            self._close_by_ms = deadline_ms
            if self._is_sending_the_rest:
                self.producing.post(CloseRequested(_NOBODYS_TICKET, deadline_ms))
        return self._closing

    def leave(self) -> Closing:
        """Close without a word to anybody: a transaction that is open stays open."""
        if self._closing is None:
            self._closing = Closing((self._end_task, self._disconnect, self._unwatch))
        return self._closing

    async def _stop_opening(self) -> None:
        if self._opening is not None and not self._opening.done():
            self._opening.cancel()
            await asyncio.wait([self._opening])

    async def _send_the_rest(self) -> None:
        if self.task is None or self.task.done():
            return
        deadline_ms = self._close_by_ms
        left_s = self.clock.left_s(deadline_ms)
        self._is_sending_the_rest = True
        async with asyncio.timeout(left_s + _GRACE_S):
            await self.producing.ask(lambda ticket: CloseRequested(ticket, deadline_ms))

    async def _push_metrics(self) -> None:
        await self.telemetry.close(self.clock.left_s(self._close_by_ms))

    async def _end_task(self) -> None:
        self.producing.end_waits(closed())
        if self.task is None:
            return
        self.task.cancel()
        _, running = await asyncio.wait([self.task], timeout=_GRACE_S)
        if running:
            raise Kip848Error("a task of the producer does not end although it was cancelled")

    async def _disconnect(self) -> None:
        await self.transport.close(closed())

    async def _unwatch(self) -> None:
        if self._metrics is not None:
            self.config.metrics.close(self._metrics)
