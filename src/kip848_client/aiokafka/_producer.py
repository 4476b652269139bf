"""``AIOKafkaProducer``: aiokafka's class with our producer inside.

``send``, ``send_and_wait``, ``create_batch``, ``send_batch``, ``flush`` and ``start`` are
inherited, because other code wraps them. Transactions are ours: aiokafka commits a transaction in
which a record was refused, and sends offsets without a member.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Self

from kip848_client.aiokafka._adapters import ProducerAdapter
from kip848_client.aiokafka._client import LinkedClient
from kip848_client.aiokafka._consumer import AIOKafkaConsumer
from kip848_client.aiokafka._members import member_for
from kip848_client.aiokafka._parents import AIOKafkaProducer as TheirProducer
from kip848_client.aiokafka._parents import commit_structure_validate, errors
from kip848_client.aiokafka._sender import (
    Accumulator,
    ProducerTranslating,
    Routes,
    Sender,
    TransactionState,
    receipts,
)
from kip848_client.aiokafka._settings import producer_settings
from kip848_client.aiokafka.errors import Translating
from kip848_client.core.short import repr_at_any_time

__all__ = ["AIOKafkaProducer"]


class AIOKafkaProducer(TheirProducer):  # type: ignore[misc]  # aiokafka has no types
    """``aiokafka.AIOKafkaProducer``, which sends each record once and in order.

    If any record or offset of a transaction is refused, it can only be aborted. Arguments, methods,
    results and errors are aiokafka's; docs/how-to/come-from-aiokafka.md says what differs.

    Args:
        **settings: aiokafka's, and those of ``kip848_client.Producer``. The defaults are
            aiokafka's.

    Raises:
        TypeError: A setting is unknown.
        ValueError: A setting is wrong.
    """

    _closed: bool | None

    def __init__(self, **settings: Any) -> None:
        for_theirs, for_ours = producer_settings(settings)
        super().__init__(**for_theirs)
        client = LinkedClient.like(self.client)
        try:
            with Translating():
                inner = ProducerAdapter(client_id=client.client_id, **for_ours)
        except BaseException:
            self._closed = True  # or its end would be missed
            raise
        inner.tell(receipts(inner))
        routes = Routes(inner, client)
        client.learn = routes.learn
        self._inner = inner
        self._translating = ProducerTranslating(inner)
        self.client: Any = client
        self._metadata: Any = routes
        self._sender: Any = Sender(inner, client)
        self._message_accumulator: Any = Accumulator(inner, inner.config.max_batch_size)
        self._txn_manager: Any = TransactionState(inner) if inner.config.idempotent else None

    @repr_at_any_time
    def __repr__(self) -> str:
        return f"<AIOKafkaProducer of kip848_client {self.client!r}>"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def stop(self) -> None:
        """Send what waits, abort an open transaction, and disconnect.

        Takes at most ``request_timeout_ms`` plus ``linger_ms``; 30 s with a transactional id. A
        second call does nothing.

        Raises:
            IllegalOperation: The call comes from another event loop, thread or process.
        """
        if self._closed:
            return
        with self._translating:
            self._inner.check_home()
        self._closed = True
        try:
            await self._sender.close()
        finally:
            await self.client.close()

    async def partitions_for(self, topic: str) -> set[int]:
        """Get the partitions of a topic.

        Args:
            topic: Name of the topic.

        Returns:
            Their numbers.

        Raises:
            KafkaError: The brokers gave no answer, or refuse the topic.
        """
        found = set(await super().partitions_for(topic))
        await self.client.learn_of(topic)
        return found

    def _partition(
        self,
        topic: str,
        partition: int | None,
        key: Any,
        value: Any,
        serialized_key: bytes | None,
        serialized_value: bytes | None,
    ) -> int:
        """A faster version of aiokafka's, called for each record and by instrumentation."""
        _ = key, value, serialized_value
        known = self._inner.partitions_known(topic)
        every, led = ((), ()) if known is None else known
        if partition is None:
            chosen: int = self._partitioner(serialized_key, [*every], [*led])
            return chosen
        assert partition >= 0
        assert partition in every, "Unrecognized partition"
        return partition

    # -- transactions ----------------------------------------------------------------------------

    async def begin_transaction(self) -> None:
        """Open a transaction.

        Gives way to other tasks once before that, as in aiokafka: a task that is cancelled then has
        begun nothing.

        Raises:
            IllegalOperation: The producer has no ``transactional_id``, or a transaction is open.
            KafkaError: The coordinator cannot be had in time.
        """
        self._ensure_transactional()
        await asyncio.sleep(0)
        with self._translating:
            await self._inner.begin_transaction()

    async def commit_transaction(self) -> None:
        """Wait for everything that was sent in the transaction, and commit it.

        If the caller is cancelled the commit continues, as in aiokafka.

        Raises:
            TransactionAbortedError: Something of it was refused or lost; call
                ``abort_transaction``.
            CommitInDoubtError: The outcome is not known in time; call it again.
            IllegalOperation: The producer has no ``transactional_id``, or no transaction is open.
        """
        self._ensure_transactional()
        await self._to_its_end(self._inner.commit_transaction())

    async def abort_transaction(self) -> None:
        """Drop what waits, and abort the transaction.

        If the caller is cancelled the abort continues, as in aiokafka.

        Raises:
            IllegalOperation: The producer has no ``transactional_id``, or no transaction is open.
            KafkaError: The coordinator gave no answer in time; the abort continues.
        """
        self._ensure_transactional()
        await self._to_its_end(self._inner.abort_transaction())

    async def _to_its_end(self, ending: Coroutine[Any, Any, None]) -> None:
        """Finish even if the caller is cancelled, as in aiokafka, where the next transaction can
        begin then. Ours would wait for a call that retrieves the outcome of the last one."""
        with self._translating:
            await asyncio.shield(asyncio.ensure_future(ending))

    async def send_offsets_to_transaction(self, offsets: Any, group_id: Any) -> None:
        """Commit a group's offsets with the transaction.

        Args:
            offsets: By partition, as aiokafka takes them. ``None`` with a consumer: the position
                after everything it has delivered.
            group_id: Name of the group. If a consumer of this process has read the partitions, the
                offsets are committed for that member. Or that ``AIOKafkaConsumer``, or its
                ``group_metadata()``, taken together with the offsets.

        Raises:
            CommitFailedError: A partition is not the consumer's any more; the transaction can only
                be aborted.
            IllegalOperation: The producer has no ``transactional_id``, or no transaction is open.
            ValueError: ``group_id`` is empty.
        """
        self._ensure_transactional()
        with self._translating:
            self._inner.check_home()
        if not self._txn_manager.is_in_transaction():
            raise errors.IllegalOperation("Not in the middle of a transaction")
        group: Any = group_id
        if isinstance(group_id, AIOKafkaConsumer):
            group = group_id.inner
        elif not group_id:
            raise ValueError(group_id)
        given: Any = None
        if isinstance(group_id, str):
            given = commit_structure_validate(offsets)
            servers = self._inner.config.bootstrap_servers
            group = member_for(group_id, servers, given) or group_id
        elif offsets is not None:
            given = commit_structure_validate(offsets)
        with self._translating:
            await self._inner.send_offsets_to_transaction(given, group)
