"""How a batch is written exactly once: a two-phase commit. Pure: commands out, answers in.

Theory of operation
-------------------
Each task writes its rows in its own transaction and leaves it open. Then the driver *decides*: in
one transaction of its own, it records which transactions make up the batch. From then on these are
committed: by this driver or, after a crash, by the next one, when Spark repeats the batch. All
others are aborted. So a task that is repeated may write other rows than before. If a batch is
repeated after its decision, the driver only carries out the decision.

Before it decides, a driver takes over the query's transactional id (``FenceDriver``). That fences
every driver before it: none of them can decide any more. Then it reads what is decided. Only this
driver, or a later one that takes over in turn, can add to that.

Kafka aborts a transaction that is open for too long, even if its commit is decided. So the driver
decides only if all transactions are open and have time left. If it dies after its decision, had
committed some transactions but not all, and the batch is not repeated in time, then rows are lost,
and that is reported. If it had committed none, the batch is decided again.

``commit`` and ``abort`` are generators of commands: the driver sends the answer to each. It may die
at any command, before or after the command has taken effect.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from kip848_client.errors import Kip848Error
from kip848_client.spark.sink.core._decisions import Decision, Kept, Participant
from kip848_client.spark.sink.core._transactional_ids import is_of

__all__ = [
    "AbortStale",
    "Batch",
    "BatchLost",
    "BatchRefused",
    "Command",
    "Decide",
    "Describe",
    "End",
    "FenceDriver",
    "ListOpen",
    "Read",
    "Seen",
    "TransactionStatus",
    "Warn",
    "abort",
    "commit",
]

LEAST_LEFT_MS: Final = 5_000
"""The least time that must be left, at a decision, until the first transaction times out."""


class BatchRefused(Kip848Error):
    """A batch was not written, not even in part; it can be repeated."""


class BatchLost(Kip848Error):
    """Part of a batch was committed; the rest was aborted by Kafka, or its state is unknown."""


class TransactionStatus(Enum):
    """The state of a transaction."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"
    """Kafka has forgotten its id."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A transaction, as its coordinator describes it."""

    status: TransactionStatus
    started_ms: int = 0
    """By the brokers' clock."""
    left_ms: int = 0
    """The time until it times out."""


@dataclass(frozen=True, slots=True)
class Batch:
    """The batch that Spark commits or aborts."""

    name: str
    """The ``kafka.transactional.id`` of the query."""
    query: str
    number: int
    run: str
    participants: tuple[Participant, ...]
    fails_on_data_loss: bool = True


@dataclass(frozen=True, slots=True)
class FenceDriver:
    """Become the only driver of the query: fence all earlier ones."""


@dataclass(frozen=True, slots=True)
class Read:
    """Read the decisions. The answer is ``Kept``."""


@dataclass(frozen=True, slots=True)
class Describe:
    """Describe these transactions. The answer is a ``Seen`` for each."""

    participants: tuple[Participant, ...]


@dataclass(frozen=True, slots=True)
class Decide:
    """Store a decision, all or nothing, under the transactional id that was taken over. It replaces
    the decisions that are stored."""

    decision: Decision
    kept: Kept


@dataclass(frozen=True, slots=True)
class End:
    """Commit or abort these transactions. The answer is the new state of each."""

    participants: tuple[Participant, ...]
    commits: bool


@dataclass(frozen=True, slots=True)
class ListOpen:
    """List the open transactions of the query's tasks. The answer is a ``Seen`` for each id."""


@dataclass(frozen=True, slots=True)
class AbortStale:
    """Abort transactions that will never be committed. If that fails, Kafka aborts them later."""

    transactional_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Warn:
    """Log a warning."""

    text: str


Command = FenceDriver | Read | Describe | Decide | End | ListOpen | AbortStale | Warn
Steps = Generator[Command, Any, None]
_Statuses = Mapping[Participant, TransactionStatus]


def commit(batch: Batch) -> Steps:
    """Commit a batch whose tasks have all written. When this ends, each row is written once. Raises
    ``BatchRefused``, ``BatchLost``."""
    yield FenceDriver()
    kept: Kept = yield Read()
    yield from _end_others(batch, kept)
    before = _of_query(batch, kept)
    if before is not None and before.batch > batch.number:
        yield End(batch.participants, commits=False)
        raise BatchRefused(
            f"batch {batch.number} comes after batch {before.batch} of the same query was written: "
            "its checkpoint was reset, so its rows may already be written. To write them anyway, "
            f"delete group {batch.name}, which stores what was written, or choose another "
            "kafka.transactional.id"
        )
    if before is not None and before.batch == batch.number:
        statuses = yield from _carry_out(batch, before)
        if statuses is not None:
            yield End(_without(batch.participants, before.participants), commits=False)
            yield from _report_losses(batch, statuses)
            return
    yield from _write(batch, kept)


def abort(batch: Batch) -> Steps:
    """Abort a batch, which Spark may repeat later. A decision about it is carried out nevertheless:
    the commit that failed may have made it."""
    yield FenceDriver()
    kept: Kept = yield Read()
    before = _of_query(batch, kept)
    decided: tuple[Participant, ...] = ()
    if before is not None and before.batch == batch.number:
        statuses = yield from _carry_out(batch, before)
        decided = () if statuses is None else before.participants
    yield End(_without(batch.participants, decided), commits=False)


def _of_query(batch: Batch, kept: Kept) -> Decision | None:
    mine = [each for each in kept.decisions if each.query == batch.query]
    return max(mine, key=lambda each: each.batch, default=None)


def _without(
    participants: Iterable[Participant], others: Iterable[Participant]
) -> tuple[Participant, ...]:
    left_out = frozenset(others)
    return tuple(each for each in participants if each not in left_out)


def _end_others(batch: Batch, kept: Kept) -> Steps:
    """Carry out the decisions of other queries with this name, which will not do so themselves."""
    for decision in kept.decisions:
        if decision.query != batch.query and decision.participants:
            seen: Mapping[Participant, Seen] = yield Describe(decision.participants)
            still = tuple(
                each for each, found in seen.items() if found.status is TransactionStatus.OPEN
            )
            if still:
                yield End(still, commits=True)


def _carry_out(batch: Batch, before: Decision) -> Generator[Command, Any, _Statuses | None]:
    """Commit the transactions that were decided for this batch; the state of each. ``None``: none
    was committed, and at least one cannot be, so all are aborted and the batch is decided again."""
    seen: Mapping[Participant, Seen] = yield Describe(before.participants)
    statuses = {each: found.status for each, found in seen.items()}
    still = tuple(each for each, status in statuses.items() if status is TransactionStatus.OPEN)
    is_begun = any(
        status in (TransactionStatus.COMMITTED, TransactionStatus.UNKNOWN)
        for status in statuses.values()
    )
    is_harmed = TransactionStatus.ABORTED in statuses.values()
    if still:
        ended: _Statuses = yield End(still, commits=is_begun or not is_harmed)
        statuses |= ended
    if any(status is not TransactionStatus.ABORTED for status in statuses.values()):
        return statuses
    yield Warn(
        f"batch {batch.number} was decided, but Kafka aborted it before any part was committed; it "
        "is written again"
    )
    return None


def _write(batch: Batch, kept: Kept) -> Steps:
    """Write a batch that is not written yet."""
    earliest_ms = 0
    if batch.participants:
        seen: Mapping[Participant, Seen] = yield Describe(batch.participants)
        refused = _why_not(seen)
        if refused is not None:
            yield End(batch.participants, commits=False)
            raise BatchRefused(f"batch {batch.number} was not written: {refused}")
        decision = Decision(batch.query, batch.number, batch.run, tuple(sorted(batch.participants)))
        yield Decide(decision, kept)
        statuses: _Statuses = yield End(batch.participants, commits=True)
        if all(status is TransactionStatus.ABORTED for status in statuses.values()):
            raise BatchRefused(
                f"batch {batch.number} was not written: between decision and commit, its "
                "transactions timed out or were aborted by another client"
            )
        yield from _report_losses(batch, statuses)
        earliest_ms = min(each.started_ms for each in seen.values())
    open_now: Mapping[str, Seen] = yield ListOpen()
    stale = _stale(batch, open_now, earliest_ms)
    if stale:
        yield AbortStale(stale)


def _why_not(seen: Mapping[Participant, Seen]) -> str | None:
    """The reason why the batch cannot be decided; ``None`` if it can."""
    for each, found in seen.items():
        if found.status is not TransactionStatus.OPEN:
            return (
                f"transaction {each.transactional_id} is {found.status.value}, not open. Either it "
                "was open for longer than kafka.transaction.timeout.ms, or another query has the "
                "same kafka.transactional.id or the same checkpoint"
            )
        if found.left_ms < LEAST_LEFT_MS:
            return (
                f"transaction {each.transactional_id} has {found.left_ms} ms left until it times "
                f"out, less than the {LEAST_LEFT_MS} ms that a commit may take; raise "
                "kafka.transaction.timeout.ms (up to the brokers' transaction.max.timeout.ms), or "
                "write smaller batches"
            )
    return None


def _stale(batch: Batch, found: Mapping[str, Seen], earliest_ms: int) -> tuple[str, ...]:
    """Transactions that will never be committed: other attempts of this run, and those that are
    older than this batch. A younger one of another run may belong to a later driver."""
    mine = {each.transactional_id for each in batch.participants}
    return tuple(
        sorted(
            each
            for each, seen in found.items()
            if each not in mine
            and is_of(batch.name, None, each)
            and (is_of(batch.name, batch.run, each) or seen.started_ms < earliest_ms)
        )
    )


def _report_losses(batch: Batch, statuses: _Statuses) -> Steps:
    """Report rows that were decided and are not committed. Raises ``BatchLost``."""
    lost = sorted(each for each, status in statuses.items() if status is TransactionStatus.ABORTED)
    unknown = sorted(
        each for each, status in statuses.items() if status is not TransactionStatus.COMMITTED
    )
    if not unknown:
        return
    rows = sum(each.rows for each in unknown)
    names = ", ".join(each.transactional_id for each in unknown[:3])
    if len(unknown) > 3:
        names += f" and {len(unknown) - 3} more"
    what = (
        f"{rows} rows of batch {batch.number} are lost: Kafka has aborted {names} after the commit "
        "was decided, because it was open for longer than kafka.transaction.timeout.ms"
        if lost
        else f"it is unknown whether {rows} rows of batch {batch.number} were committed: Kafka no "
        f"longer has {names}"
    )
    if batch.fails_on_data_loss:
        raise BatchLost(
            f"{what}. To continue without them, set failOnDataLoss=false; to write the whole batch "
            f"again, and its other rows twice, delete group {batch.name}"
        )
    yield Warn(f"{what}; continuing because of failOnDataLoss=false")
