"""What becomes of a batch that is written exactly once. Pure: commands come out, answers go in.

Theory of operation
-------------------
Each task writes its rows in a transaction of its own and leaves it open. Then the driver *decides*:
it writes down, in one transaction of its own, which transactions are the rows of the batch. From
then on they are committed, by whoever is there: by this driver, or after a crash by the next one,
when Spark repeats the batch. What was not decided is aborted. So tasks need not do the same when
they are repeated, and a batch that is repeated after its decision only has that one carried out.

Before it decides, a driver takes over the query's transactional id (``FenceDriver``). That fences
every driver before it: none of them can decide any more. Then it reads what is decided. Only this
driver, or a later one that takes over in turn, can add to that.

A transaction that was open for too long is aborted by Kafka, also one whose commit is decided. So
nothing is decided unless all are open and have time left. If a driver dies after its decision, and
nobody repeats the batch in time, and it had committed some but not all: then rows are lost, and
that is told. If it had committed none, the batch is decided anew.

``commit`` and ``abort`` are generators of commands: the driver sends the answer to each. It may die
at any command, before or after that has taken effect.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from kip848_client.errors import Kip848Error
from kip848_client.spark.core._decisions import Decision, Kept, Participant, is_of

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
"""A decision needs so much time until the first of its transactions times out."""


class BatchRefused(Kip848Error):
    """A batch was not written: nothing of it is there, and it can be repeated."""


class BatchLost(Kip848Error):
    """A part of a batch was committed, and the rest was aborted by Kafka, or nobody knows."""


class TransactionStatus(Enum):
    """What has become of a transaction."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"
    UNKNOWN = "unknown"
    """Kafka has forgotten its id."""


@dataclass(frozen=True, slots=True)
class Seen:
    """A transaction, as its coordinator tells it."""

    status: TransactionStatus
    started_ms: int = 0
    """By the clock of brokers."""
    left_ms: int = 0
    """Until it times out."""


@dataclass(frozen=True, slots=True)
class Batch:
    """What Spark wants to be committed or aborted."""

    name: str
    """The ``kafka.transactional.id`` of the query."""
    query: str
    number: int
    run: str
    participants: tuple[Participant, ...]
    fails_on_data_loss: bool = True


@dataclass(frozen=True, slots=True)
class FenceDriver:
    """Become the one driver of the query."""


@dataclass(frozen=True, slots=True)
class Read:
    """What is decided? The answer is ``Kept``."""


@dataclass(frozen=True, slots=True)
class Describe:
    """What has become of them? The answer is a ``Seen`` of each."""

    participants: tuple[Participant, ...]


@dataclass(frozen=True, slots=True)
class Decide:
    """Write down what is decided, all or nothing, in the name that was taken over. What else was
    kept is superseded."""

    decision: Decision
    kept: Kept


@dataclass(frozen=True, slots=True)
class End:
    """Commit or abort them. The answer is what became of each."""

    participants: tuple[Participant, ...]
    commits: bool


@dataclass(frozen=True, slots=True)
class ListOpen:
    """Which transactions of the query's tasks are open? The answer is a ``Seen`` of each id."""


@dataclass(frozen=True, slots=True)
class AbortStale:
    """Abort what nobody will commit. That may fail: Kafka aborts it in time."""

    transactional_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Warn:
    """Something for the log."""

    text: str


Command = FenceDriver | Read | Describe | Decide | End | ListOpen | AbortStale | Warn
Steps = Generator[Command, Any, None]
_Statuses = Mapping[Participant, TransactionStatus]


def commit(batch: Batch) -> Steps:
    """All tasks have written. When this ends the rows are there, each once. Raises
    ``BatchRefused``, ``BatchLost``."""
    yield FenceDriver()
    kept: Kept = yield Read()
    yield from _end_others(batch, kept)
    before = _of_query(batch, kept)
    if before is not None and before.batch > batch.number:
        yield End(batch.participants, commits=False)
        raise BatchRefused(
            f"batch {batch.number} comes after batch {before.batch} of the same query was written: "
            "its checkpoint was set back, so that what it writes may be there already. To write it "
            f"all the same delete group {batch.name}, which keeps what was written, or choose "
            "another kafka.transactional.id"
        )
    if before is not None and before.batch == batch.number:
        statuses = yield from _carry_out(batch, before)
        if statuses is not None:
            yield End(_without(batch.participants, before.participants), commits=False)
            yield from _tell_losses(batch, statuses)
            return
    yield from _write(batch, kept)


def abort(batch: Batch) -> Steps:
    """Spark gives the batch up for now. What was decided is carried out all the same: the decision
    may have been made by the commit that has failed."""
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
    """What another query of that name has decided and not carried out: it will not come back to
    it."""
    for decision in kept.decisions:
        if decision.query != batch.query and decision.participants:
            seen: Mapping[Participant, Seen] = yield Describe(decision.participants)
            still = tuple(
                each for each, found in seen.items() if found.status is TransactionStatus.OPEN
            )
            if still:
                yield End(still, commits=True)


def _carry_out(batch: Batch, before: Decision) -> Generator[Command, Any, _Statuses | None]:
    """Commit what was decided of this batch; what has become of it. ``None``: nothing of it was
    committed, and something cannot be any more, so that all is aborted, and may be decided anew."""
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
        f"batch {batch.number} was decided, and then aborted by Kafka before anything of it was "
        "committed; it is written anew"
    )
    return None


def _write(batch: Batch, kept: Kept) -> Steps:
    """A batch that is not there yet."""
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
                f"batch {batch.number} was not written: its transactions were aborted by others, "
                "or timed out, between the decision and the commit"
            )
        yield from _tell_losses(batch, statuses)
        earliest_ms = min(each.started_ms for each in seen.values())
    open_now: Mapping[str, Seen] = yield ListOpen()
    stale = _stale(batch, open_now, earliest_ms)
    if stale:
        yield AbortStale(stale)


def _why_not(seen: Mapping[Participant, Seen]) -> str | None:
    """Why nothing can be decided."""
    for each, found in seen.items():
        if found.status is not TransactionStatus.OPEN:
            return (
                f"transaction {each.transactional_id} is {found.status.value}, not open. It was "
                "open for longer than kafka.transaction.timeout.ms, or another query has the same "
                "kafka.transactional.id, or the same checkpoint"
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
    """What nobody will commit: other attempts of this run, and what is older than this batch. What
    is younger and of another run may be a successor's, who knows better."""
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


def _tell_losses(batch: Batch, statuses: _Statuses) -> Steps:
    """Whether all that was decided is there."""
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
        else f"nobody knows whether {rows} rows of batch {batch.number} were committed: Kafka has "
        f"forgotten {names}"
    )
    if batch.fails_on_data_loss:
        raise BatchLost(
            f"{what}. To go on without them set failOnDataLoss=false; to write the whole batch "
            f"again, and its other rows twice, delete group {batch.name}"
        )
    yield Warn(f"{what}; going on, as failOnDataLoss=false says")
