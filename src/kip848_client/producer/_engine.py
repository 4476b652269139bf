"""Wires together everything that runs between ``start`` and ``stop`` of a producer.

One asyncio task holds the task group of all other tasks of the producer.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from kip848_client.config import ProducerConfig
from kip848_client.core.cluster import ClusterEvent
from kip848_client.core.ports import Clock
from kip848_client.core.produce import (
    CloseRequested,
    ProducerCore,
    ProduceSettings,
    StartRequested,
)
from kip848_client.errors import Kip848Error
from kip848_client.observe.core.metrics import connection_rows
from kip848_client.observe.core.watching import ProducerMeter
from kip848_client.producer._deliveries import Receipts
from kip848_client.producer._produce_driver import ProduceDriver
from kip848_client.runtime._backoff import jittered
from kip848_client.runtime._closing import Closing
from kip848_client.runtime.client._observers import Observers
from kip848_client.runtime.client._parts import connection_options
from kip848_client.runtime.client._runtime import ClientRuntime
from kip848_client.runtime.net._builder import builder_maker
from kip848_client.runtime.net._transport import KafkaTransport
from kip848_client.runtime.random import CHANCE

__all__ = ["Engine", "Network", "connections"]

Network = Callable[[ProducerConfig, Clock], KafkaTransport]

_GRACE_S: Final = 1.0
"""How much longer to wait for a step whose time is over."""
_NOBODYS_TICKET: Final = 0
_RECEIPTS: Final = Receipts()


def connections(
    config: ProducerConfig, clock: Clock, kind: Callable[..., KafkaTransport] = KafkaTransport
) -> KafkaTransport:
    """Connections to the brokers; none is open yet. (Tests replace this.)"""
    return kind(config.bootstrap_servers, None, connection_options(config), clock)


def produce_settings(config: ProducerConfig) -> ProduceSettings:
    """The settings for the core."""
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
        runtime: ClientRuntime,
        config: ProducerConfig,
        network: Network = connections,
        receipts: Receipts = _RECEIPTS,
    ) -> None:
        self.config: Final = config
        self.runtime: Final = runtime
        self.clock: Final = runtime.clock
        self.transport: Final = network(config, self.clock)
        ids = {"client_id": config.client_id, "transactional_id": config.transactional_id}
        observers = Observers(self.clock, ids, config, {"client-id": config.client_id})
        self.observers: Final = observers
        observers.measure(self.transport, connection_rows.PRODUCER)
        observers.push(self.transport, {"transactional_id": config.transactional_id})
        runtime.connect(self.transport, observers)
        self.core: Final = ProducerCore(
            produce_settings(config),
            jittered,
            CHANCE.randrange,
            builder_maker(config.compression_type),
        )
        self.topics: Final = runtime.topic_directory(config, self._learnt)
        self.producing: Final = ProduceDriver(
            self.core,
            self.transport,
            self.topics,
            self.clock,
            is_transactional=config.transactional_id is not None,
            meter=self._meter(),
            receipts=receipts,
            fields=observers.fields,
        )
        self._is_sending_the_rest = False

    def _meter(self) -> ProducerMeter | None:
        if self.observers.metrics is None:
            return None
        has_id = self.config.transactional_id is not None
        return ProducerMeter(self.observers.metrics, self.core, is_transactional=has_id)

    def _learnt(self, told: ClusterEvent) -> None:
        self.producing.post(told)

    def deadline_ms(self) -> int:
        """The deadline of a call that begins now."""
        return self.clock.now_ms() + self.config.max_block_ms

    # -- life cycle --------------------------------------------------------------------------

    async def open(self) -> None:
        """Connect and, with a transactional id, take the id over as its only producer."""
        await self.transport.bootstrap()
        await self.topics.refresh()
        self.runtime.run(self.producing.run(), self._end_waits)
        await self.producing.begun()
        self.producing.keep_fresh()
        if self.config.transactional_id is not None:
            await self.producing.ask_for_features()
        deadline_ms = self.deadline_ms()
        await self.producing.ask(lambda ticket: StartRequested(ticket, deadline_ms))
        self.observers.telemetry.begin()

    def _end_waits(self, error: Kip848Error | None) -> None:
        self.producing.end_waits(error or self.runtime.closed())

    def stop(self, timeout_ms: float) -> Closing:
        """Accept nothing more. The returned ``Closing`` sends the rest and closes."""
        return self.runtime.close(timeout_ms, (self._send_the_rest,), self._hurry)

    def leave(self) -> Closing:
        """Close without ending the transaction: an open one stays open."""
        return self.runtime.close(0)

    def _hurry(self) -> None:
        if self._is_sending_the_rest:
            self.producing.post(CloseRequested(_NOBODYS_TICKET, self.runtime.close_by_ms))

    async def _send_the_rest(self) -> None:
        task = self.runtime.task
        if task is None or task.done():
            return
        deadline_ms = self.runtime.close_by_ms
        self._is_sending_the_rest = True
        async with asyncio.timeout(self.runtime.left_s() + _GRACE_S):
            await self.producing.ask(lambda ticket: CloseRequested(ticket, deadline_ms))
