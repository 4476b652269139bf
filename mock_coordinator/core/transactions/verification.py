"""Verification of transactional batches before they are written.

A producer that was fenced, or whose transaction was aborted by another client, may still have
requests in flight. So the leader of a partition asks the transaction coordinator before the first
batch of each transaction (KIP-890). Producers of transaction version 2 (Produce version 12) do not
announce where they will write; for them the verification adds the partition to the transaction.

The coordinator's errors are translated for producers, whose older versions do not know all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kip848_client.core.wire.messages.produce import ProduceRequest
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.logs.producer_state import ProducerStates
from mock_coordinator.core.logs.record_batch import NO_PRODUCER_ID, BatchHeader
from mock_coordinator.core.profile import Profile
from mock_coordinator.core.state.broker import Broker
from mock_coordinator.core.transaction_coordinator.coordinator import TransactionCoordinator
from mock_coordinator.core.transaction_coordinator.records import TxnPartition

__all__ = [
    "is_transactional",
    "must_verify",
    "refused_partitions",
    "refused_request",
    "told_to_groups",
    "translated",
]

ADDS_SINCE: Final = 12
"""Producing adds partitions to the transaction from this version of Produce on."""
ABORTABLE_SINCE: Final = 11
"""TRANSACTION_ABORTABLE is known from this version of Produce on."""

_ATTRIBUTES_AT: Final = 22
_TRANSACTIONAL: Final = 0x10

NOT_ADDED: Final = "Partition was not added to the transaction"
UNVERIFIED: Final = (
    "Unable to verify the partition has been added to the transaction. Underlying error: {}"
)
_UNAVAILABLE: Final = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)

Refusal = tuple[ErrorCode, str | None]
Headers = Mapping[TxnPartition, BatchHeader]


def is_transactional(request: ProduceRequest) -> bool:
    """Whether any batch of the request belongs to a transaction, by the bit in its header."""
    return any(
        len(partition.records or b"") > _ATTRIBUTES_AT
        and (partition.records or b"")[_ATTRIBUTES_AT] & _TRANSACTIONAL
        for topic in request.topic_data
        for partition in topic.partition_data
    )


def must_verify(broker: Broker) -> bool:
    """Whether leaders ask at all."""
    return broker.config.boolean("transaction.partition.verification.enable")


def refused_request(request: ProduceRequest, headers: Headers) -> ErrorCode | None:
    """Why no batch of a transactional request is appended at all."""
    if request.transactional_id is None:
        return ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    producers = {
        (header.producer_id, header.producer_epoch)
        for header in headers.values()
        if header.is_transactional and header.producer_id != NO_PRODUCER_ID
    }
    return ErrorCode.INVALID_PRODUCER_ID_MAPPING if len(producers) > 1 else None


def refused_partitions(
    coordinator: TransactionCoordinator,
    now_ms: int,
    version: int,
    request: ProduceRequest,
    headers: Headers,
    states_of: Callable[[TxnPartition], ProducerStates],
    profile: Profile,
) -> dict[TxnPartition, Refusal]:
    """Ask for the partitions in which the producer's transaction is not open yet; returns those to
    which nothing may be written."""
    asked: list[TxnPartition] = []
    refusals: dict[TxnPartition, Refusal] = {}
    producer = (NO_PRODUCER_ID, -1)
    adds = version >= ADDS_SINCE
    for partition, header in headers.items():
        if not header.is_transactional or header.producer_id == NO_PRODUCER_ID:
            continue
        producer = (header.producer_id, header.producer_epoch)
        states = states_of(partition)
        if profile.older_epoch_fenced_unasked and states.has_seen_newer(*producer):
            refusals[partition] = (ErrorCode.INVALID_PRODUCER_EPOCH, None)
        elif not states.has_open_transaction(*producer):
            from_zero = adds and profile.transactions_begin_with_sequence_zero
            states.start_verification(now_ms, header, from_zero=from_zero)
            asked.append(partition)
    if not asked:
        return refusals
    transactional_id = request.transactional_id or ""
    answers = coordinator.verify(now_ms, transactional_id, producer, asked, add=adds)
    for partition, code in answers.items():
        if code:
            knows_abortable = version >= ABORTABLE_SINCE
            refusals[partition] = translated(code, knows_abortable=knows_abortable, adds=adds)
    return refusals


def translated(code: ErrorCode, *, knows_abortable: bool, adds: bool) -> Refusal:
    """The coordinator's error as a producer gets it, with the message. Errors that older producers
    would not expect become one that they retry; ``adds``: a producer of transaction version 2."""
    if code in _UNAVAILABLE or (code is ErrorCode.CONCURRENT_TRANSACTIONS and not adds):
        return ErrorCode.NOT_ENOUGH_REPLICAS, UNVERIFIED.format(code.name)
    if code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH, None
    if code is ErrorCode.TRANSACTION_ABORTABLE and not knows_abortable:
        return ErrorCode.INVALID_TXN_STATE, NOT_ADDED
    return code, None


def told_to_groups(code: ErrorCode, *, knows_abortable: bool) -> ErrorCode:
    """The coordinator's error as it answers a commit of offsets."""
    if code in _UNAVAILABLE:
        return code
    return translated(code, knows_abortable=knows_abortable, adds=True)[0]
