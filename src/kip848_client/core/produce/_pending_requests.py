"""One request of a transaction to a coordinator: its content, its command, the meaning of its
answer, and the user's error if it is refused."""

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
"""The order in which jobs are sent."""

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
"""If the partitions of one answer call for different reactions, the first of these counts."""


@dataclass(slots=True, eq=False)
class PendingRequest:
    """A request to be repeated until it is answered. Its content depends on ``api``."""

    api: Api
    key: Key
    producer: ProducerId
    partitions: dict[TopicPartition, None] = field(default_factory=dict[TopicPartition, None])
    """ADD_PARTITIONS: the partitions that are not added yet."""
    group: Group | None = None
    offsets: dict[TopicPartition, OffsetToCommit] = field(
        default_factory=dict[TopicPartition, OffsetToCommit]
    )
    """COMMIT_OFFSETS: the offsets that the group coordinator has not accepted yet."""
    ticket: int | None = None
    commit: bool = False
    limit_ms: int | None = None
    """When it is given up."""
    failures: int = 0
    collisions: int = 0
    """Collisions with other pending writes for the same transactional id."""
    not_before_ms: int = 0
    node: int = -1
    """The last node asked."""
    asked: tuple[TopicPartition, ...] = ()
    is_dropped: bool = False
    """Its result is not needed any more; its answer is still awaited."""
    in_doubt: bool = False
    """An attempt may have taken effect without an answer."""
    is_gone: bool = False
    """One of its topics seems not to exist any more."""
    trouble: str = ""

    def give_up_by(self, time_ms: int) -> None:
        """One of its topics does not exist: if that stays so, give up at this time."""
        if self.limit_ms is not None and time_ms < self.limit_ms:
            self.is_gone = True
            self.limit_ms = time_ms


def command(
    job: PendingRequest, number: int, settings: ProduceSettings, version: TransactionVersion
) -> do.Command:
    """The command that sends a job to its node."""
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


# -- interpreting answers ------------------------------------------------------------------------


def said_of(job: PendingRequest, event: TxnAnswered) -> Mapping[TopicPartition, int]:
    """Codes by requested partition. A partition that the broker left out counts as not served."""
    if event.error_code or event.partitions is None:
        return dict.fromkeys(job.asked, event.error_code)
    return {tp: event.partitions.get(tp, ErrorCode.UNKNOWN_SERVER_ERROR) for tp in job.asked}


def gravest(api: Api, codes: Mapping[TopicPartition, int]) -> int:
    """The code that decides what happens to the job; 0 for none."""
    return min(codes.values(), key=lambda code: _GRAVITY.index(reaction(api, code)), default=0)


# -- errors for the user -------------------------------------------------------------------------


def error_of(
    job: PendingRequest, code: int, message: str | None, bad: Mapping[TopicPartition, int] | None
) -> Kip848Error:
    """The error for a refusal. Refused offsets become a failed commit."""
    error = refusal(job.api, code, message or _about(job, bad))
    if job.api is not Api.COMMIT_OFFSETS or reaction(job.api, code) not in _ABORTS:
        return error
    hint = ""
    if code in MEMBER_REFUSED:
        hint = "; the member is not in the group any more, or not in this epoch"
    return not_committed(job, f"{error}{hint}", error)


def not_committed(job: PendingRequest, why: str, cause: Kip848Error | None = None) -> CommitFailed:
    """The error for offsets that are not committed."""
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
