"""Transactions of other producers: list, describe and end them.

For programs that must end transactions begun by another process, with its reported producer id and
epoch (such as a coordinator of a two-phase commit). Kafka before KIP-939 has no such public API, so
this is not public either.
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
"""Versions of EndTxn that do not bump the epoch."""
_V2: Final = (5, 5)
_INIT_AS: Final = (3, 5)
"""Versions of InitProducerId that may carry a producer id and epoch (KIP-360)."""
_IS_ANOTHER: Final = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})
"""The producer has already been fenced: by an earlier attempt, or by another client."""
_TIMEOUT_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class DescribedTransaction:
    """A transaction as described by its coordinator."""

    state: str
    producer_id: int
    epoch: int
    started_ms: int
    """Start time on the coordinator's clock; -1 for none."""
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class TransactionToEnd:
    """One specific transaction of a transactional id."""

    transactional_id: str
    producer_id: int
    epoch: int
    is_v2: bool
    """Whether it uses transactions version 2 (KIP-890)."""


class TransactionAdmin(Admin):
    """An ``Admin`` that can end transactions."""

    async def open_transactions(self, *, timeout_ms: float | None = None) -> list[str]:
        """Return the transactional ids with an open transaction, as far as this principal may see
        them."""
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
        """Return the coordinators' descriptions; ``None`` for an id that is unknown (by now)."""
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
        """Commit or abort transactions; returns the errors by transactional id. Repeating a
        completed request is not an error."""
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
        """Abort open transactions of these producers, and let them begin no more; returns the
        errors. An id that has another producer by now is left alone."""
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
