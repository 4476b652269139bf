"""A transaction for another process to end: all records are written, and the producer stops without
aborting it.

Kafka calls such a transaction prepared (KIP-939). This works with brokers that do not know KIP-939;
they abort the transaction after its timeout.
"""

from __future__ import annotations

from dataclasses import dataclass

from kip848_client.core.produce import State, TransactionVersion
from kip848_client.errors import LocalProtocolError
from kip848_client.producer._producer import Producer

__all__ = ["PreparedProducer", "PreparedTransaction"]


@dataclass(frozen=True, slots=True)
class PreparedTransaction:
    """The data needed to end the transaction."""

    transactional_id: str
    producer_id: int
    epoch: int
    is_v2: bool
    """Whether it uses transactions version 2 (KIP-890)."""


class PreparedProducer(Producer[bytes, bytes]):
    """A producer whose transaction other processes may end."""

    async def prepare_transaction(self) -> PreparedTransaction:
        """Stop, and leave the open transaction with all its records for another process to end.

        Waits until all records are written. Another process can end the transaction with the
        result; brokers abort it after ``transaction_timeout_ms``. The producer is stopped
        afterwards.

        Returns:
            The data needed to end the transaction.

        Raises:
            TransactionAborted: Something of the transaction was refused or lost; call ``stop``.
            LocalProtocolError: No transaction is open; call ``stop``.
        """
        engine = self._transactional()
        await self.flush()
        core = engine.core
        if core.transaction_state is State.ABORTABLE:
            await self.commit_transaction()  # raises the reason why it is not possible
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
