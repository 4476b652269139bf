"""A transaction as a block: ``async with producer.transaction() as txn``."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping
from contextlib import suppress
from types import CoroutineType, TracebackType
from typing import Any, Generic, Protocol, TypeVar

from kip848_client.errors import Kip848Error, LocalProtocolError, TransactionAborted
from kip848_client.producer._deliveries import RecordMetadata
from kip848_client.producer._sending import Sending

__all__ = ["Transaction", "Transactor"]

K = TypeVar("K")
V = TypeVar("V")


class Transactor(Protocol):
    """The interface of a producer for its transactions."""

    async def begin_transaction(self) -> None:
        """Open a transaction."""
        ...

    async def commit_transaction(self) -> None:
        """Commit the transaction."""
        ...

    async def abort_transaction(self) -> None:
        """Abort the transaction."""
        ...

    async def send_offsets_to_transaction(
        self, offsets: Mapping[Any, Any] | None, group: Any
    ) -> None:
        """Commit offsets with the transaction."""
        ...

    def sending(self) -> Sending:
        """Get the object that accepts records."""
        ...


class Transaction(Generic[K, V]):
    """A block that commits at its end, and aborts if an error leaves it.

    ``Producer.transaction`` makes it; enter it with ``async with``. To abort, raise an error in it.

    Await each ``send``. One that is not awaited sends nothing, and one that has not returned may
    not be part of the transaction: if the block is left before all have returned, the transaction
    is aborted, and ``LocalProtocolError`` raised.

    The end of the block raises ``TransactionAborted`` if a record or offset was refused, even if
    the application has caught that error; the transaction is then aborted. It raises
    ``CommitInDoubt`` if the outcome is not known: call ``producer.commit_transaction()``. If a task
    is cancelled while it waits for the abort, the next transaction waits for the end of that abort.

    Args:
        producer: The producer whose transaction it is.
    """

    def __init__(self, producer: Transactor) -> None:
        self._producer = producer
        self._is_open: bool | None = None
        self._last: CoroutineType[Any, Any, Any] | None = None
        """The last ``send``."""
        self._unreturned: list[CoroutineType[Any, Any, Any]] = []
        """Calls of ``send`` that had not returned when the next one was made."""

    async def __aenter__(self) -> Transaction[K, V]:
        if self._is_open is not None:
            raise LocalProtocolError("a block is one transaction; call transaction() for another")
        await self._producer.begin_transaction()
        self._is_open = True
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_open = False
        if error is None and (missing := self._missing()):
            await self._abort(missing)
            raise missing
        if error is None:
            await self._commit()
        else:
            await self._abort(error)

    def _missing(self) -> LocalProtocolError | None:
        """The error for records that seem to be part of the transaction but are not."""
        if self._last is not None:
            self._unreturned.append(self._last)
        missing = [each for each in self._unreturned if each.cr_frame is not None]
        if not missing:
            return None
        return LocalProtocolError(
            f"the transaction is aborted: {len(missing)} of its records were not sent when its "
            "block was left; await each txn.send(...) before that"
        )

    async def _abort(self, error: BaseException) -> None:
        """Abort because of this error."""
        try:
            await self._producer.abort_transaction()
        except asyncio.CancelledError:
            raise
        except Kip848Error as err:
            with suppress(Exception):  # the application's error may be a frozen dataclass
                error.add_note(f"aborting the transaction failed, too: {err}")

    async def _commit(self) -> None:
        try:
            await self._producer.commit_transaction()
        except TransactionAborted as err:
            await self._abort(err)
            raise

    def send(
        self,
        topic: str,
        value: V | None = None,
        key: K | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Iterable[tuple[str, bytes | None]] | None = None,
    ) -> Coroutine[Any, Any, asyncio.Future[RecordMetadata]]:
        """Send a record with this transaction, like ``Producer.send``.

        The future need not be awaited: the end of the block waits for all records, and raises if
        one was refused.

        Args:
            topic: Name of the topic.
            value: An argument for the ``value_serializer``; without one, bytes or ``None``.
            key: An argument for the ``key_serializer``; without one, bytes or ``None``.
            partition: Number of the partition. Default: chosen by the partitioner.
            timestamp_ms: Milliseconds since 1970. Default: the time of the call.
            headers: Pairs of a name and bytes (or ``None``).

        Returns:
            A coroutine, which must be awaited. It returns a future of the record's
            ``RecordMetadata``.

        Raises:
            LocalProtocolError: The block was not entered, or was left.
            Kip848Error: As ``Producer.send``.
        """
        self._check()
        last = self._last
        if last is not None and last.cr_frame is not None:
            self._unreturned.append(last)
        sending = self._producer.sending()
        call = sending.send(topic, value, key, partition, timestamp_ms, headers, self._check)
        self._last = call  # type: ignore[assignment]  # what an async function returns
        return call

    async def send_offsets(self, group: Any, offsets: Mapping[Any, Any] | None = None) -> None:
        """Commit a group's offsets with this transaction.

        Args:
            group: The ``Consumer`` that read the records, its ``group_metadata()``, or the group's
                name.
            offsets: By partition: the offset of the *next* record to read. ``None`` with a
                ``Consumer``: the positions after all records it has returned.

        Raises:
            LocalProtocolError: The block was not entered, or was left.
            Kip848Error: As ``Producer.send_offsets_to_transaction``.
        """
        self._check()
        await self._producer.send_offsets_to_transaction(offsets, group)

    def _check(self) -> None:
        if not self._is_open:
            raise LocalProtocolError("this transaction is not open; send within its block")
