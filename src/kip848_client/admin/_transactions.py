"""Transactions of others: which there are, what has become of them, their end.

For those who have to end transactions that another process has begun, with the producer id and the
epoch that it has told (as a coordinator of a two-phase commit does). There is no such public API in
Kafka before KIP-939, so that this is none either.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from kip848_client.admin._admin import Admin
from kip848_client.admin._failures import all_of
from kip848_client.admin._request_router import TRANSACTION_KEY
from kip848_client.admin.core._retry_rounds import Refusal
from kip848_client.core.wire.messages.transaction_admin import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponseTransactionState,
    ListTransactionsRequest,
)
from kip848_client.core.wire.messages.transactions import EndTxnRequest, InitProducerIdRequest
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import BrokerError, Kip848Error, refusal

__all__ = ["DescribedTransaction", "TransactionAdmin", "TransactionToEnd"]

_ONGOING: Final = "Ongoing"
_V1: Final = (0, 4)
"""Versions of EndTxn that leave the epoch alone."""
_V2: Final = (5, 5)
_INIT_AS: Final = (3, 5)
"""Versions of InitProducerId that may name who is meant (KIP-360)."""
_IS_ANOTHER: Final = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})
"""What was meant has been fenced: by an earlier attempt, or by somebody else."""
_TIMEOUT_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class DescribedTransaction:
    """What the coordinator of a transactional id tells."""

    state: str
    producer_id: int
    epoch: int
    started_ms: int
    """By the coordinator's clock; -1 for none."""
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class TransactionToEnd:
    """One transaction, and no other that the id may have."""

    transactional_id: str
    producer_id: int
    epoch: int
    is_v2: bool
    """Whether it is one of version 2 (KIP-890)."""


class TransactionAdmin(Admin):
    """An ``Admin`` that can end transactions."""

    async def open_transactions(self, *, timeout_ms: float | None = None) -> list[str]:
        """The transactional ids, as far as this principal may see them, whose transaction is
        open."""
        router, deadline_ms = self._begin(timeout_ms)

        async def ask(node: int, _: tuple[int, ...]) -> Mapping[int, list[str] | Refusal]:
            request = ListTransactionsRequest(state_filters=(_ONGOING,))
            answer = await router.to(node, request, deadline_ms)
            if answer.error_code:
                return {node: refusal(answer.error_code, None, "ListTransactions")}
            return {node: [each.transactional_id for each in answer.transaction_states]}

        done, failed = await router.of_each(ask, deadline_ms)
        found = all_of("listing transactions", done, failed)
        return sorted(each for some in found.values() for each in some)

    async def describe_transactions(
        self, transactional_ids: Collection[str], *, timeout_ms: float | None = None
    ) -> dict[str, DescribedTransaction | None]:
        """What their coordinators tell; ``None`` for an id that none knows (any more)."""
        router, deadline_ms = self._begin(timeout_ms)

        async def ask(
            node: int, targets: tuple[str, ...]
        ) -> Mapping[str, DescribedTransaction | Refusal | None]:
            request = DescribeTransactionsRequest(transactional_ids=targets)
            answer = await router.to(node, request, deadline_ms)
            return {each.transactional_id: _described(each) for each in answer.transaction_states}

        done, failed = await router.of_coordinators(
            transactional_ids, ask, deadline_ms, key_type=TRANSACTION_KEY
        )
        return all_of("describing transactions", done, failed)

    async def end_transactions(
        self,
        transactions: Collection[TransactionToEnd],
        *,
        commits: bool,
        timeout_ms: float | None = None,
    ) -> dict[str, Kip848Error]:
        """Commit or abort transactions; why which of them was not, by transactional id. To ask
        again for what was done is no error."""
        router, deadline_ms = self._begin(timeout_ms)
        by_id = {each.transactional_id: each for each in transactions}

        async def ask(node: int, targets: tuple[str, ...]) -> Mapping[str, str | Refusal]:
            found: dict[str, str | Refusal] = {}
            for name in targets:
                each = by_id[name]
                request = EndTxnRequest(
                    transactional_id=name,
                    producer_id=each.producer_id,
                    producer_epoch=each.epoch,
                    committed=commits,
                )
                versions = _V2 if each.is_v2 else _V1
                answer = await router.to(node, request, deadline_ms, versions)
                found[name] = _ended(answer.error_code, "EndTxn")
            return found

        _, failed = await router.of_coordinators(by_id, ask, deadline_ms, key_type=TRANSACTION_KEY)
        return failed

    async def fence(
        self,
        transactions: Mapping[str, DescribedTransaction],
        *,
        timeout_ms: float | None = None,
    ) -> dict[str, Kip848Error]:
        """Abort open transactions of these producers, and let them begin no more; why which was
        not. One that has another producer by now is left alone."""
        router, deadline_ms = self._begin(timeout_ms)

        async def ask(node: int, targets: tuple[str, ...]) -> Mapping[str, str | Refusal]:
            found: dict[str, str | Refusal] = {}
            for name in targets:
                request = InitProducerIdRequest(
                    transactional_id=name,
                    transaction_timeout_ms=_TIMEOUT_MS,
                    producer_id=transactions[name].producer_id,
                    producer_epoch=transactions[name].epoch,
                )
                answer = await router.to(node, request, deadline_ms, _INIT_AS)
                code = 0 if answer.error_code in _IS_ANOTHER else answer.error_code
                found[name] = _ended(code, "InitProducerId")
            return found

        _, failed = await router.of_coordinators(
            transactions, ask, deadline_ms, key_type=TRANSACTION_KEY
        )
        return failed


def _described(
    each: DescribeTransactionsResponseTransactionState,
) -> DescribedTransaction | Refusal | None:
    if each.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
        return None
    if each.error_code:
        return refusal(each.error_code, None, "DescribeTransactions")
    return DescribedTransaction(
        each.transaction_state,
        each.producer_id,
        each.producer_epoch,
        each.transaction_start_time_ms,
        each.transaction_timeout_ms,
    )


def _ended(code: int, api: str) -> str | BrokerError:
    return refusal(code, None, api) if code else "done"
