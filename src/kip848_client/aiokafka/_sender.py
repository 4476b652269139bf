"""Stands in for the sender, the accumulator and the transaction state of aiokafka's producer, whose
``send`` and ``send_batch`` are inherited and call these classes."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping
from contextvars import ContextVar
from functools import partial
from typing import Any, Final

from kip848_client.aiokafka._adapters import ProducerAdapter
from kip848_client.aiokafka._client import LinkedClient
from kip848_client.aiokafka._parents import BatchBuilder, TheirTransactionState, errors
from kip848_client.aiokafka._request_shims import RequestShim
from kip848_client.aiokafka.errors import Translating
from kip848_client.aiokafka.structs import RecordMetadata, TopicPartition
from kip848_client.core.produce import State
from kip848_client.errors import Kip848Error, LocalProtocolError, ProducerFailed
from kip848_client.producer import Receipts

__all__ = ["Accumulator", "ProducerTranslating", "Routes", "Sender", "TransactionState", "receipts"]

Header = tuple[str, bytes | None]

_due: Final[ContextVar[RequestShim | None]] = ContextVar("kip848_client_produce", default=None)
"""The request for which ``_send_produce_req`` was called."""


class ProducerTranslating(Translating):
    """Translates errors for calls that a producer cannot make now."""

    def __init__(self, inner: ProducerAdapter) -> None:
        self._inner = inner

    def instead_of(self, error: Kip848Error) -> Exception:
        if isinstance(error, ProducerFailed) and _is_unexpected(error.cause):
            unexpected: Exception = errors.KafkaError(
                f"Unexpected error during batch delivery: {error}"
            )
            unexpected.__cause__ = error
            return unexpected
        if not isinstance(error, LocalProtocolError):
            return super().instead_of(error)
        kind = errors.ProducerClosed if self._inner.is_ending else errors.IllegalOperation
        made: Exception = kind(str(error))
        made.__cause__ = error
        return made


def _is_unexpected(cause: BaseException | None) -> bool:
    """Whether the error comes from other code, not from a broker."""
    return cause is not None and not isinstance(cause, Kip848Error | errors.KafkaError)


class Accumulator:
    """Takes records."""

    def __init__(self, inner: ProducerAdapter, batch_bytes: int) -> None:
        self._inner = inner
        self._batch_bytes = batch_bytes
        self._translating = ProducerTranslating(inner)
        self._is_silent = inner.config.transactional_id is not None
        """Whether the end of a transaction also reports records that fail."""

    async def add_message(
        self,
        tp: Any,
        key: Any,
        value: Any,
        _timeout: float,
        timestamp_ms: int | None = None,
        headers: Iterable[Header] = (),
    ) -> asyncio.Future[Any]:
        """Add a record to a batch; the future returns its offset."""
        try:
            sending = self._inner.bytes_sending()
            return await sending.send(tp[0], value, key, tp[1], timestamp_ms, headers)
        except Kip848Error as err:
            raise self._translating.instead_of(err) from err

    def create_builder(self, key_serializer: Any = None, value_serializer: Any = None) -> Batch:
        """A builder in which an application collects records to send together."""
        return Batch(
            self._batch_bytes, 0, key_serializer=key_serializer, value_serializer=value_serializer
        )

    async def add_batch(self, builder: Any, tp: Any, _timeout: float) -> asyncio.Future[Any]:
        """Send the collected records; the future returns the offset of the first one."""
        if not isinstance(builder, Batch) or not builder.records:
            raise ValueError("send_batch needs a non-empty batch from create_batch")
        builder.close()
        with self._translating:
            sending = self._inner.bytes_sending()
            await sending.begin_turn()
        sent: list[asyncio.Future[Any]] = []
        for timestamp_ms, key, value, headers in builder.records:
            sending.keep_turn()  # otherwise the records would not be one batch
            sent.append(await self.add_message(tp, key, value, _timeout, timestamp_ms, headers))
        return self._of_all(sent)

    async def flush(self) -> None:
        """Wait until all records that were sent are done, or until a stop is complete."""
        with self._translating:
            if self._inner.was_stopped:
                await self._inner.stop()
            else:
                await self._inner.flush()

    def _of_all(self, sent: list[asyncio.Future[Any]]) -> asyncio.Future[Any]:
        """The result of the first record when all are written, or the first error."""
        told: asyncio.Future[Any] = sent[0].get_loop().create_future()

        def tell(done: asyncio.Future[list[Any]]) -> None:
            if told.done():
                return
            error = None if done.cancelled() else done.exception()
            if done.cancelled():
                told.cancel()
            elif error is None:
                told.set_result(done.result()[0])
            else:
                told.set_exception(error)
                if self._is_silent:
                    told.exception()

        asyncio.gather(*sent).add_done_callback(tell)
        return told


class Batch(BatchBuilder):  # type: ignore[misc]  # aiokafka has no types
    """aiokafka's builder, which limits the size of a batch; this one also keeps the records."""

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
        """Add a record; ``None`` if the batch is full or closed."""
        kept = tuple(headers or ())
        added = super().append(timestamp=timestamp, key=key, value=value, headers=list(kept))
        if added is not None:
            # the time that was returned to the application is the time that is sent
            self.records.append((added.timestamp, *self._last, kept))
        return added


def receipts(inner: ProducerAdapter) -> Receipts:
    """Results of records: aiokafka's ``RecordMetadata`` (``None`` without acks), and its errors."""

    def nothing(_row: tuple[Any, ...]) -> None:
        return None

    return Receipts(
        receipt=nothing if inner.config.acks == 0 else partial(tuple.__new__, RecordMetadata),
        partition=lambda tp: TopicPartition(*tp),
        error=ProducerTranslating(inner).instead_of,
    )


class Sender:
    """Starts and stops the producer."""

    def __init__(self, inner: ProducerAdapter, client: LinkedClient) -> None:
        self._inner = inner
        self._client = client
        self._translating = ProducerTranslating(inner)
        self._acks = inner.config.acks
        inner.go_through(client, self._translating.instead_of, self._send)

    @property
    def sender_task(self) -> asyncio.Task[None] | None:
        """The sending task, after the start."""
        return self._inner.sending_task

    _sender_task = sender_task

    async def start(self) -> None:
        """Connect; with a transactional id, fence other producers that have it."""
        with self._translating:
            await self._inner.start()
            await self._client.begin(self._inner.transport)

    async def _send(self, node_id: int, shim: RequestShim) -> None:
        topics: Any = shim
        batches = {
            TopicPartition(name, number): records
            for name, partitions in topics.topics
            for number, records in partitions
        }
        token = _due.set(shim)
        try:
            await self._send_produce_req(node_id, batches)
        finally:
            _due.reset(token)

    async def _send_produce_req(self, node_id: int, batches: Mapping[Any, Any]) -> None:
        """Send batches to the leader of their partitions. Other code may wrap it, and its errors
        take effect; ``batches`` is read-only."""
        _ = batches
        shim = _due.get()
        if shim is not None:
            _due.set(None)
            shim.returned = await self._client.send(node_id, shim)

    async def close(self) -> None:
        """Send waiting records, abort an open transaction, disconnect."""
        with self._translating:
            await self._inner.stop()


class Routes:
    """Partitions of the topics that are written to; other metadata comes from the client's
    ``cluster``."""

    def __init__(self, inner: ProducerAdapter, client: LinkedClient) -> None:
        self._inner = inner
        self._client = client
        self._translating = ProducerTranslating(inner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client.cluster, name)

    async def learn(self, topic: str) -> frozenset[int]:
        """The partitions, by a request if necessary. When this returns, ``cluster`` has them, too,
        with their leaders."""
        known = self._inner.partitions_known(topic)
        if known is not None:
            return known[0]
        with self._translating:
            found = await self._inner.partitions_for(topic)
        await self._client.learn_of(topic)
        return found

    def partitions_for_topic(self, topic: str) -> Any:
        """All partitions; ``None`` if the topic is not known."""
        known = self._inner.partitions_known(topic)
        return None if known is None else known[0]

    def available_partitions_for_topic(self, topic: str) -> Any:
        """The partitions with a leader."""
        known = self._inner.partitions_known(topic)
        return None if known is None else known[1]


_STATES: Final = {
    State.COMMITTING: "COMMITTING_TRANSACTION",
    State.IN_DOUBT: "COMMITTING_TRANSACTION",
    State.ABORTING: "ABORTING_TRANSACTION",
    State.BUMPING: "ABORTING_TRANSACTION",
    State.ABORTABLE: "ABORTABLE_ERROR",
    State.FATAL: "FATAL_ERROR",
}
"""States that have another name in aiokafka, or none."""


class TransactionState:
    """The state of the transaction, by aiokafka's names."""

    def __init__(self, inner: ProducerAdapter) -> None:
        self._inner = inner
        self.transactional_id = inner.config.transactional_id
        self.transaction_timeout_ms = inner.config.transaction_timeout_ms

    @property
    def producer_id(self) -> int:
        """The producer id from the broker; -1 before that."""
        return self._inner.who[0]

    @property
    def producer_epoch(self) -> int:
        """The epoch of the producer id; -1 before there is one."""
        return self._inner.who[1]

    @property
    def state(self) -> Any:
        """aiokafka's ``TransactionState``."""
        state = self._inner.transaction_state or State.UNINITIALIZED
        return TheirTransactionState[_STATES.get(state, state.name)]

    def is_in_transaction(self) -> bool:
        """Whether ``send`` is allowed. Raises the reason if the transaction can only be aborted."""
        return self._inner.transaction_state in {State.IN_TRANSACTION, State.ABORTABLE}

    def is_fatal_error(self) -> bool:
        """Whether the producer can no longer be used."""
        return self._inner.transaction_state is State.FATAL


Asked = Coroutine[Any, Any, None]
