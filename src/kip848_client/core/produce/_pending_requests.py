"""One thing that a transaction asks of a coordinator: what it is about, the request that it makes,
what an answer says of it, and what the user is told when it is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from kip848_client.core.partition_names import listed
from kip848_client.core.produce import _commands as do
from kip848_client.core.produce._coordinators import Key
from kip848_client.core.produce._error_rules import MEMBER_REFUSED, Api, Reaction, reaction, refusal
from kip848_client.core.produce._events import TxnAnswered
from kip848_client.core.produce._model import (
    Group,
    OffsetToCommit,
    ProducerId,
    ProduceSettings,
    TransactionVersion,
)
from kip848_client.core.types import TopicPartition
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import CommitFailed, Kip848Error

__all__ = ["ORDER", "PendingRequest", "command", "error_of", "gravest", "not_committed", "said_of"]

ORDER: Final = (
    Api.INIT_PRODUCER_ID,
    Api.ADD_PARTITIONS,
    Api.ADD_OFFSETS,
    Api.COMMIT_OFFSETS,
    Api.END_TRANSACTION,
)
"""In which jobs go out."""

_ABORTS: Final = (Reaction.ABORT, Reaction.ABORT_AND_BUMP)
_GRAVITY: Final = (
    Reaction.FATAL,
    Reaction.RECOVER,
    Reaction.ASK,
    Reaction.ABORT_AND_BUMP,
    Reaction.ABORT,
    Reaction.REFRESH,
    Reaction.RETRY,
)
"""Of the reactions to the partitions of one answer the first of these counts."""


@dataclass(slots=True, eq=False)
class PendingRequest:
    """Something to be asked until it is answered. What it is about depends on ``api``."""

    api: Api
    key: Key
    producer: ProducerId
    partitions: dict[TopicPartition, None] = field(default_factory=dict[TopicPartition, None])
    """ADD_PARTITIONS: what is to be added, and is not yet."""
    group: Group | None = None
    offsets: dict[TopicPartition, OffsetToCommit] = field(
        default_factory=dict[TopicPartition, OffsetToCommit]
    )
    """COMMIT_OFFSETS: what the coordinator of the group has not taken yet."""
    ticket: int | None = None
    commit: bool = False
    limit_ms: int | None = None
    """When it is given up."""
    failures: int = 0
    collisions: int = 0
    """With something else that was being written of the same transactional id."""
    not_before_ms: int = 0
    node: int = -1
    """Who was asked last."""
    asked: tuple[TopicPartition, ...] = ()
    is_dropped: bool = False
    """Nobody wants it any more; its answer is waited for all the same."""
    in_doubt: bool = False
    """An attempt may have had its effect without an answer."""
    is_gone: bool = False
    """A topic that it is about seems to be there no more."""
    trouble: str = ""

    def give_up_by(self, time_ms: int) -> None:
        """A topic that it is about is not there: if that stays so, this is enough."""
        if self.limit_ms is not None and time_ms < self.limit_ms:
            self.is_gone = True
            self.limit_ms = time_ms


def command(
    job: PendingRequest, number: int, settings: ProduceSettings, version: TransactionVersion
) -> do.Command:
    """The request of a job, to the node that it has."""
    me, node, group = settings.transactional_id or "", job.node, job.group
    match job.api:
        case Api.INIT_PRODUCER_ID:
            timeout_ms = settings.transaction_timeout_ms
            return do.InitProducerId(number, node, me, timeout_ms, job.producer)
        case Api.ADD_PARTITIONS:
            job.asked = tuple(job.partitions)
            return do.AddPartitions(number, node, me, job.producer, job.asked)
        case Api.ADD_OFFSETS if group is not None:
            return do.AddOffsets(number, node, me, job.producer, group.group_id)
        case Api.COMMIT_OFFSETS if group is not None:
            job.asked = tuple(job.offsets)
            return do.CommitOffsets(
                number, node, me, job.producer, version, group, dict(job.offsets)
            )
        case Api.END_TRANSACTION:
            return do.EndTransaction(number, node, me, job.producer, version, job.commit)
        case _:
            raise AssertionError(f"nothing to send for {job!r}")


# -- what an answer says -------------------------------------------------------------------------


def said_of(job: PendingRequest, event: TxnAnswered) -> Mapping[TopicPartition, int]:
    """Codes by partition that was asked for. One that the broker left out was not served."""
    if event.error_code or event.partitions is None:
        return dict.fromkeys(job.asked, event.error_code)
    return {tp: event.partitions.get(tp, ErrorCode.UNKNOWN_SERVER_ERROR) for tp in job.asked}


def gravest(api: Api, codes: Mapping[TopicPartition, int]) -> int:
    """The code that decides what becomes of the job; 0 for none."""
    return min(codes.values(), key=lambda code: _GRAVITY.index(reaction(api, code)), default=0)


# -- what the user is told -----------------------------------------------------------------------


def error_of(
    job: PendingRequest, code: int, message: str | None, bad: Mapping[TopicPartition, int] | None
) -> Kip848Error:
    """Of a refusal. Offsets that were refused are told as a commit that failed."""
    error = refusal(job.api, code, message or _about(job, bad))
    if job.api is not Api.COMMIT_OFFSETS or reaction(job.api, code) not in _ABORTS:
        return error
    hint = ""
    if code in MEMBER_REFUSED:
        hint = "; the member is not in the group any more, or not in this epoch"
    return not_committed(job, f"{error}{hint}", error)


def not_committed(job: PendingRequest, why: str, cause: Kip848Error | None = None) -> CommitFailed:
    """Of offsets that are not committed."""
    group = "" if job.group is None else job.group.group_id
    return CommitFailed(
        f"the offsets of group {group!r} were not committed: {why}",
        offsets=job.offsets,
        cause=cause,
    )


def _about(job: PendingRequest, bad: Mapping[TopicPartition, int] | None) -> str | None:
    where = listed(bad) if bad else ""
    group = f"group {job.group.group_id!r}" if job.group is not None else ""
    return ", ".join(each for each in (group, where) if each) or None
