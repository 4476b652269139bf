"""TxnOffsetCommit (API 28, KIP-447): offsets that take effect when a transaction is committed.

The producer sends them, not the consumer, with the consumer's member id and epoch (or generation)
if it knows them. The rules are those of OffsetCommit with two differences: a request without a
member is always accepted, because older producers do not name one, and before version 6 errors are
those of the classic protocol (KIP-1319).

The transaction was verified before this is called.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kip848_client.core.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from kip848_client.core.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups.offsets.commit import (
    MEMBER_EPOCH_VERSION,
    TOPIC_ID_VERSION,
    CommittedTopic,
    decide_offsets,
    names_partitions,
    refuse_offsets,
    require_txn_committer,
)
from mock_coordinator.core.groups.state.environment import Decision, Environment
from mock_coordinator.core.refused import Refused
from mock_coordinator.core.topics.catalog import Catalog

__all__ = ["decide_txn_commit", "needs_transaction", "refuse_txn_commit"]

IDS_AND_EPOCHS_VERSION: Final = 6
"""From this version on topics are named by id, and refusals in the words of KIP-848 (KIP-1319)."""

_IN_OLD_WORDS: Final = {
    ErrorCode.STALE_MEMBER_EPOCH: ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.GROUP_ID_NOT_FOUND: ErrorCode.ILLEGAL_GENERATION,
}


def decide_txn_commit(
    env: Environment, now_ms: int, version: int, request: TxnOffsetCommitRequest
) -> Decision[TxnOffsetCommitResponse]:
    """Decide one TxnOffsetCommit. Never raises: every refusal is an answer per partition."""

    def require(topics: Sequence[CommittedTopic]) -> None:
        if not request.group_id:
            raise Refused(ErrorCode.INVALID_GROUP_ID)
        try:
            require_txn_committer(env, plain, topics)
        except Refused as err:
            if version < IDS_AND_EPOCHS_VERSION and err.code in _IN_OLD_WORDS:
                raise Refused(_IN_OLD_WORDS[err.code]) from err
            raise

    plain = _as_plain_commit(request)
    producer = (request.producer_id, request.producer_epoch)
    decision = decide_offsets(
        env, now_ms, _plain_version(version), plain, require, producer=producer
    )
    return Decision(
        _response(decision.response), decision.records, simple_group=decision.simple_group
    )


def refuse_txn_commit(
    catalog: Catalog, version: int, request: TxnOffsetCommitRequest, code: ErrorCode
) -> TxnOffsetCommitResponse:
    """The answer when the transaction could not be verified: topics and partitions that do not
    exist have their own errors."""
    plain = _as_plain_commit(request)
    return _response(refuse_offsets(catalog, _plain_version(version), plain, code))


def needs_transaction(catalog: Catalog, version: int, request: TxnOffsetCommitRequest) -> bool:
    """Whether the transaction must be verified. Topics and partitions that do not exist need no
    verification."""
    return names_partitions(catalog, _plain_version(version), _as_plain_commit(request))


def _plain_version(version: int) -> int:
    """The version of OffsetCommit that has the same fields."""
    return TOPIC_ID_VERSION if version >= IDS_AND_EPOCHS_VERSION else MEMBER_EPOCH_VERSION


def _as_plain_commit(request: TxnOffsetCommitRequest) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=request.group_id,
        generation_id_or_member_epoch=request.generation_id_or_member_epoch,
        member_id=request.member_id,
        group_instance_id=request.group_instance_id,
        topics=tuple(
            OffsetCommitRequestTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=tuple(
                    OffsetCommitRequestPartition(
                        partition_index=partition.partition_index,
                        committed_offset=partition.committed_offset,
                        committed_leader_epoch=partition.committed_leader_epoch,
                        committed_metadata=partition.committed_metadata,
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in request.topics
        ),
    )


def _response(answer: OffsetCommitResponse) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        topics=tuple(
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=tuple(
                    TxnOffsetCommitResponsePartition(
                        partition_index=partition.partition_index, error_code=partition.error_code
                    )
                    for partition in topic.partitions
                ),
            )
            for topic in answer.topics
        )
    )
