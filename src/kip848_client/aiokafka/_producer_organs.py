"""What stands below aiokafka's producer instead of its sender, its accumulator and its state of
transactions. aiokafka's own ``send`` and ``send_batch`` are inherited and reach into these."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from kip848_client._aiokafka._client import LinkedClient
from kip848_client._aiokafka._theirs import BatchBuilder, errors
from kip848_client.aiokafka._inner import InnerProducer
from kip848_client.aiokafka.errors import Translating
from kip848_client.aiokafka.structs import RecordMetadata, TopicPartition
from kip848_client.errors import Kip848Error, LocalProtocolError
from kip848_client.producing import State

__all__ = ["Accumulator", "ProducerTranslating", "Routes", "Sender", "TransactionState"]

Header = tuple[str, bytes | None]


class ProducerTranslating(Translating):
    """aiokafka has other words for what a producer cannot do now."""

    def __init__(self, inner: InnerProducer) -> None:
        self._inner = inner

    def instead_of(self, error: Kip848Error) -> Exception:
        if not isinstance(error, LocalProtocolError):
            return super().instead_of(error)
        kind = errors.ProducerClosed if self._inner.is_ending else errors.IllegalOperation
        made: Exception = kind(str(error))
        made.__cause__ = error
        return made


class Accumulator:
    """Takes records."""

    def __init__(self, inner: InnerProducer, batch_bytes: int) -> None:
        self._inner = inner
        self._batch_bytes = batch_bytes
        self._translating = ProducerTranslating(inner)
        self._is_acknowledged = inner.config.acks != 0
        self._is_silent = inner.config.transactional_id is not None
        """Whether the end of a transaction tells of records that fail, too."""

    async def add_message(
        self,
        tp: Any,
        key: Any,
        value: Any,
        _timeout: float,
        timestamp_ms: int | None = None,
        headers: Iterable[Header] = (),
    ) -> asyncio.Future[Any]:
        """Put a record into a batch; the future tells where it is."""
        sent = await self._send(tp, key, value, timestamp_ms, headers)
        return self._told(sent, _metadata)

    def create_builder(self, key_serializer: Any = None, value_serializer: Any = None) -> Batch:
        """What an application collects records in, to send them together."""
        return Batch(
            self._batch_bytes, 0, key_serializer=key_serializer, value_serializer=value_serializer
        )

    async def add_batch(self, builder: Any, tp: Any, _timeout: float) -> asyncio.Future[Any]:
        """Send what was collected; the future tells where the first record is."""
        if not isinstance(builder, Batch) or not builder.records:
            raise ValueError("send_batch takes what create_batch returned, with records in it")
        builder.close()
        sent = [
            await self._send(tp, key, value, timestamp_ms, headers)
            for timestamp_ms, key, value, headers in builder.records
        ]
        return self._told(asyncio.gather(*sent), lambda all_of_it: _metadata(all_of_it[0]))

    async def flush(self) -> None:
        """Wait for all that was sent."""
        with self._translating:
            await self._inner.flush()

    async def _send(
        self, tp: Any, key: Any, value: Any, timestamp_ms: int | None, headers: Iterable[Header]
    ) -> asyncio.Future[Any]:
        with self._translating:
            sending = self._inner.bytes_sending()
            return await sending.send(tp.topic, value, key, tp.partition, timestamp_ms, headers)

    def _told(
        self, sent: asyncio.Future[Any], metadata: Callable[[Any], Any]
    ) -> asyncio.Future[Any]:
        """A future of aiokafka's metadata, or error."""
        told: asyncio.Future[Any] = sent.get_loop().create_future()

        def tell(sent: asyncio.Future[Any]) -> None:
            error = None if sent.cancelled() else sent.exception()
            if told.done():
                return
            if sent.cancelled():
                told.cancel()
            elif error is None:
                told.set_result(metadata(sent.result()) if self._is_acknowledged else None)
            else:
                if isinstance(error, Kip848Error):
                    error = self._translating.instead_of(error)
                told.set_exception(error)
                if self._is_silent:
                    told.exception()

        sent.add_done_callback(tell)
        return told


class Batch(BatchBuilder):  # type: ignore[misc]  # aiokafka has no types
    """aiokafka's builder says what fits into a batch; this one keeps what that is."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.records: list[tuple[int | None, Any, Any, tuple[Header, ...]]] = []
        self._last: tuple[Any, Any] = (None, None)

    def _serialize(self, key: Any, value: Any) -> tuple[Any, Any]:
        self._last = super()._serialize(key, value)
        return self._last

    def append(
        self,
        *,
        timestamp: int | None,
        key: Any,
        value: Any,
        headers: Iterable[Header] | None = (),
    ) -> Any:
        """Add a record; ``None`` when the batch is full or closed."""
        kept = tuple(headers or ())
        added = super().append(timestamp=timestamp, key=key, value=value, headers=list(kept))
        if added is not None:
            self.records.append((timestamp, *self._last, kept))
        return added


def _metadata(ours: Any) -> Any:
    return RecordMetadata(*ours)._replace(topic_partition=TopicPartition(ours[0], ours[1]))


class Sender:
    """Starts and stops what sends."""

    def __init__(self, inner: InnerProducer, client: LinkedClient) -> None:
        self._inner = inner
        self._client = client
        self._translating = ProducerTranslating(inner)
        self.sender_task: asyncio.Task[None] | None = None
        """aiokafka's own waits for one; ours has its tasks inside."""

    async def start(self) -> None:
        """Connect; with a transactional id, become the one producer that has it."""
        with self._translating:
            await self._inner.start()
            await self._client.begin(self._inner.transport)

    async def close(self) -> None:
        """Send what waits, abort what is open, disconnect."""
        with self._translating:
            await self._inner.stop()


class Routes:
    """Partitions of the topics that are written to; the rest of aiokafka's metadata is told by the
    client's ``cluster``."""

    def __init__(self, inner: InnerProducer, client: LinkedClient) -> None:
        self._inner = inner
        self._client = client
        self._translating = ProducerTranslating(inner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client.cluster, name)

    async def learn(self, topic: str) -> frozenset[int]:
        """The partitions, asked for if need be."""
        known = self._inner.partitions_known(topic)
        if known is None:
            with self._translating:
                return await self._inner.partitions_for(topic)
        return known[0]

    def partitions_for_topic(self, topic: str) -> Any:
        """All partitions, ``None`` when the topic is not known."""
        known = self._inner.partitions_known(topic)
        return None if known is None else known[0]

    def available_partitions_for_topic(self, topic: str) -> Any:
        """Those with a leader."""
        known = self._inner.partitions_known(topic)
        return None if known is None else known[1]


class TransactionState:
    """Where the transaction is, by aiokafka's names."""

    def __init__(self, inner: InnerProducer) -> None:
        self._inner = inner
        self.transactional_id = inner.config.transactional_id

    def is_in_transaction(self) -> bool:
        """Whether ``send`` may go on; where the transaction can only be aborted, it says why."""
        return self._inner.transaction_state in {State.IN_TRANSACTION, State.ABORTABLE}

    def is_fatal_error(self) -> bool:
        """Whether nothing can be asked of the producer any more."""
        return self._inner.transaction_state is State.FATAL


Asked = Coroutine[Any, Any, None]
