"""What stands below aiokafka's producer instead of its sender, its accumulator and its state of
transactions. aiokafka's own ``send`` and ``send_batch`` are inherited and reach into these."""

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
"""The request that ``_send_produce_req`` was called for."""


class ProducerTranslating(Translating):
    """aiokafka has other words for what a producer cannot do now."""

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
    """Whether somebody's code has failed, and no broker has refused anything."""
    return cause is not None and not isinstance(cause, Kip848Error | errors.KafkaError)


class Accumulator:
    """Takes records."""

    def __init__(self, inner: ProducerAdapter, batch_bytes: int) -> None:
        self._inner = inner
        self._batch_bytes = batch_bytes
        self._translating = ProducerTranslating(inner)
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
        try:
            sending = self._inner.bytes_sending()
            return await sending.send(tp[0], value, key, tp[1], timestamp_ms, headers)
        except Kip848Error as err:
            raise self._translating.instead_of(err) from err

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
        with self._translating:
            sending = self._inner.bytes_sending()
            await sending.begin_turn()
        sent: list[asyncio.Future[Any]] = []
        for timestamp_ms, key, value, headers in builder.records:
            sending.keep_turn()  # or what is collected would not be one batch
            sent.append(await self.add_message(tp, key, value, _timeout, timestamp_ms, headers))
        return self._of_all(sent)

    async def flush(self) -> None:
        """Wait until everything that was sent is done; after a stop, wait until the stop is
        done."""
        with self._translating:
            if self._inner.was_stopped:
                await self._inner.stop()
            else:
                await self._inner.flush()

    def _of_all(self, sent: list[asyncio.Future[Any]]) -> asyncio.Future[Any]:
        """What became of the first record, when all of them are there; or the first error."""
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
            # what the application was told is what is sent, however much later
            self.records.append((added.timestamp, *self._last, kept))
        return added


def receipts(inner: ProducerAdapter) -> Receipts:
    """aiokafka's ``RecordMetadata``, which are nothing where no broker tells, and its errors."""

    def nothing(_row: tuple[Any, ...]) -> None:
        return None

    return Receipts(
        receipt=nothing if inner.config.acks == 0 else partial(tuple.__new__, RecordMetadata),
        partition=lambda tp: TopicPartition(*tp),
        error=ProducerTranslating(inner).instead_of,
    )


class Sender:
    """Starts and stops what sends."""

    def __init__(self, inner: ProducerAdapter, client: LinkedClient) -> None:
        self._inner = inner
        self._client = client
        self._translating = ProducerTranslating(inner)
        self._acks = inner.config.acks
        inner.go_through(client, self._translating.instead_of, self._send)

    @property
    def sender_task(self) -> asyncio.Task[None] | None:
        """The task that sends, from the start on."""
        return self._inner.sending_task

    _sender_task = sender_task

    async def start(self) -> None:
        """Connect; with a transactional id, become the one producer that has it."""
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
        """Send batches to the leader of their partitions. It can be wrapped, and what it raises
        counts; what ``batches`` has is only to be looked at."""
        _ = batches
        shim = _due.get()
        if shim is not None:
            _due.set(None)
            shim.returned = await self._client.send(node_id, shim)

    async def close(self) -> None:
        """Send what waits, abort what is open, disconnect."""
        with self._translating:
            await self._inner.stop()


class Routes:
    """Partitions of the topics that are written to; the rest of aiokafka's metadata is told by the
    client's ``cluster``."""

    def __init__(self, inner: ProducerAdapter, client: LinkedClient) -> None:
        self._inner = inner
        self._client = client
        self._translating = ProducerTranslating(inner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client.cluster, name)

    async def learn(self, topic: str) -> frozenset[int]:
        """The partitions, asked for if need be. ``cluster`` has them, too, when this returns: who
        has sent a record finds its leader there."""
        known = self._inner.partitions_known(topic)
        if known is not None:
            return known[0]
        with self._translating:
            found = await self._inner.partitions_for(topic)
        await self._client.learn_of(topic)
        return found

    def partitions_for_topic(self, topic: str) -> Any:
        """All partitions, ``None`` when the topic is not known."""
        known = self._inner.partitions_known(topic)
        return None if known is None else known[0]

    def available_partitions_for_topic(self, topic: str) -> Any:
        """Those with a leader."""
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
"""What aiokafka calls otherwise, or has no word for."""


class TransactionState:
    """Where the transaction is, by aiokafka's names."""

    def __init__(self, inner: ProducerAdapter) -> None:
        self._inner = inner
        self.transactional_id = inner.config.transactional_id
        self.transaction_timeout_ms = inner.config.transaction_timeout_ms

    @property
    def producer_id(self) -> int:
        """As the broker has named it, -1 before that."""
        return self._inner.who[0]

    @property
    def producer_epoch(self) -> int:
        """Of the producer id, -1 before there is one."""
        return self._inner.who[1]

    @property
    def state(self) -> Any:
        """aiokafka's ``TransactionState``."""
        state = self._inner.transaction_state or State.UNINITIALIZED
        return TheirTransactionState[_STATES.get(state, state.name)]

    def is_in_transaction(self) -> bool:
        """Whether ``send`` may go on; where the transaction can only be aborted, it says why."""
        return self._inner.transaction_state in {State.IN_TRANSACTION, State.ABORTABLE}

    def is_fatal_error(self) -> bool:
        """Whether nothing can be asked of the producer any more."""
        return self._inner.transaction_state is State.FATAL


Asked = Coroutine[Any, Any, None]
