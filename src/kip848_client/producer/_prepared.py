"""A transaction that somebody else ends: all is written, and the producer goes without an abort.

What Kafka calls prepared (KIP-939), for brokers that do not know it: they abort the transaction
when its time is over.
"""

from __future__ import annotations

from dataclasses import dataclass

from kip848_client.core.produce import State, TransactionVersion
from kip848_client.errors import LocalProtocolError
from kip848_client.producer._producer import Producer

__all__ = ["PreparedProducer", "PreparedTransaction"]


@dataclass(frozen=True, slots=True)
class PreparedTransaction:
    """What it takes to end it."""

    transactional_id: str
    producer_id: int
    epoch: int
    is_v2: bool
    """Whether it is one of version 2 (KIP-890)."""


class PreparedProducer(Producer[bytes, bytes]):
    """A producer whose transaction others may end."""

    async def prepare_transaction(self) -> PreparedTransaction:
        """Stop, and leave the open transaction with all its records for another to end.

        Waits until all records are written. Others may end it by what this returns; brokers abort
        it when ``transaction_timeout_ms`` is over. The producer is stopped after this.

        Returns:
            What it takes to end the transaction.

        Raises:
            TransactionAborted: Something of the transaction was refused or lost; call ``stop``.
            LocalProtocolError: No transaction is open; call ``stop``.
        """
        engine = self._transactional()
        await self.flush()
        core = engine.core
        if core.transaction_state is State.ABORTABLE:
            await self.commit_transaction()  # raises why it is not possible
        if core.transaction_state is not State.IN_TRANSACTION:
            self._run().producing.check()
            raise LocalProtocolError(
                f"there is no transaction to prepare: the producer is {core.transaction_state}"
            )
        found = PreparedTransaction(
            self._config.transactional_id or "",
            core.who.number,
            core.who.epoch,
            core.transaction_version is TransactionVersion.V2,
        )
        self._sending = None
        await engine.leave().finish()
        return found
