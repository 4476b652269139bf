"""Checkers of what is processed, by what is in the coordinators' logs and in those of the topics.

They read the records that group coordinators write: offsets that are offered with a transaction,
and the markers that commit or abort them. Offsets carry the name of their transaction, which
nothing that acts reads.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kip848_client.core.types import TopicId, TopicPartition
from mock_coordinator.core.groups.records.state_records import (
    OffsetCommit,
    StateRecord,
    TransactionEnd,
)
from mock_coordinator.sim.exactly_once.values import is_poison, outputs_of, source_of, unsigned
from mock_coordinator.sim.invariants import Violation
from mock_coordinator.sim.log_truth import EntryStatus as Written
from mock_coordinator.sim.log_truth import LogTruth
from mock_coordinator.sim.producing.facts import Told, Transaction
from mock_coordinator.sim.producing.log_checks import LogChecks
from mock_coordinator.sim.recorded_groups import RecordedGroups

__all__ = [
    "Checks",
    "EachOnce",
    "EndedFirst",
    "NotInDoubt",
    "OffsetsToo",
    "OutputsToo",
    "Owned",
    "StaleOwner",
    "Work",
]


class EachOnce:
    """Every input is in exactly one committed transaction."""


class OffsetsToo:
    """No output is committed without the offset of its input."""


class OutputsToo:
    """No offset is committed without the outputs of all inputs before it, or their dead letters."""


class Owned:
    """Offsets are taken from the member for which the coordinator holds the partition, and from no
    other one."""


class StaleOwner:
    """A processor offers and commits nothing of a partition that it has given up, or knows to have
    lost."""


class EndedFirst:
    """No partition is given up before the transaction with records of it has ended."""


class NotInDoubt:
    """Nothing is read again while a commit is in doubt."""


@dataclass(slots=True, eq=False)
class Work:
    """One transaction of a processor, and what it has of each partition."""

    transaction: Transaction
    touched: set[TopicPartition] = field(default_factory=set[TopicPartition])
    gone: set[TopicPartition] = field(default_factory=set[TopicPartition])
    """What was given up or lost since it began."""

    def __str__(self) -> str:
        return str(self.transaction)

    @property
    def is_open(self) -> bool:
        """Whether its end is not known."""
        return self.transaction.told in (Told.NOTHING, Told.IN_DOUBT)

    # -- what the processor does -------------------------------------------------------------

    def releases(self, partitions: Collection[TopicPartition]) -> None:
        """The processor lets these be given up."""
        open_ones = sorted(self.touched & set(partitions))
        if self.is_open and open_ones:
            raise Violation(EndedFirst, f"{open_ones} are given up, and {self} is open")
        self.gone |= set(partitions)

    def gains(self, partitions: Collection[TopicPartition]) -> None:
        """These are its own from now on."""
        self.gone -= set(partitions)

    def loses(self, partitions: Collection[TopicPartition]) -> None:
        """It learned that these are lost."""
        self.gone |= set(partitions)

    def goes_on(self, what: str) -> None:
        """It offers its offsets, or asks for its commit."""
        gone = sorted(self.touched & self.gone)
        if gone:
            raise Violation(StaleOwner, f"{self} {what}, and {gone} are not its any more")

    def rewinds(self, offsets: Mapping[TopicPartition, int]) -> None:
        """It reads again from there."""
        offered = self.transaction.offsets
        again = sorted(tp for tp, at in offsets.items() if at < offered.get(tp, 0))
        if self.transaction.told is Told.IN_DOUBT and again:
            raise Violation(NotInDoubt, f"{self} is in doubt, and {again} are read again")

    def ends(self, *, commit: bool) -> None:
        """Its producer asks for its end."""
        transaction = self.transaction
        if commit and transaction.records and transaction.offsets_told is not Told.DONE:
            raise Violation(OffsetsToo, f"{self} is to be committed without offsets")


class Checks:
    """Reads what the coordinators write. ``ids`` are those of the topics that are read,
    ``dead_letters`` says whether there are any."""

    def __init__(
        self,
        writing: LogChecks,
        truth: LogTruth,
        *,
        dead_letters: bool,
        mixed: bool,
    ) -> None:
        self._writing = writing
        self._truth = truth
        self._has_dead_letters = dead_letters
        self._is_mixed = mixed
        self.ids: dict[str, TopicId] = {}
        self.members: dict[str, str] = {}
        """By process, its member id."""
        self.works: dict[str, Transaction] = {}
        """By name."""
        self.committed: dict[TopicPartition, int] = {}
        self._pending: dict[int, dict[TopicPartition, tuple[int, Transaction]]] = {}
        self.done = 0
        """Inputs that are in a committed transaction."""
        self.offsets_alone = 0

    def written(self, groups: RecordedGroups, records: Sequence[StateRecord]) -> None:
        """A group coordinator wrote these."""
        for record in records:
            match record:
                case OffsetCommit():
                    self._offered(groups, record)
                case TransactionEnd():
                    rows = self._pending.pop(record.producer_id, {})
                    if record.committed and rows:
                        self._commits(rows)
                case _:
                    pass

    def _offered(self, groups: RecordedGroups, record: OffsetCommit) -> None:
        value, tp = record.value, TopicPartition(record.topic, record.partition)
        if value is None or record.producer is None:
            raise Violation(OutputsToo, f"an offset of {tp} is committed beside a transaction")
        transaction = self.works[value.metadata]
        member = groups.member(record.group_id, self.members[transaction.owner])
        if member is None or (self.ids[tp.topic], tp.partition) not in member.held:
            raise Violation(
                Owned, f"{transaction} offers {value.offset} of {tp}, which is not held for it"
            )
        rows = self._pending.setdefault(record.producer[0], {})
        rows[tp] = (value.offset, transaction)

    def _commits(self, rows: Mapping[TopicPartition, tuple[int, Transaction]]) -> None:
        (transaction, *others) = {transaction: None for _, transaction in rows.values()}
        if others:
            raise Violation(EachOnce, f"one marker commits {transaction} and {others[0]}")
        left: dict[bytes, list[bytes]] = {}
        for each in transaction.records:
            left.setdefault(source_of(each.value), []).append(unsigned(each.value))
        for tp, (offset, _) in sorted(rows.items()):
            before = self.committed.get(tp, 0)
            if offset < before:
                raise Violation(EachOnce, f"{transaction} takes {tp} back from {before}: {offset}")
            for value in self._readable(tp, before, offset):
                self._check(transaction, value, left.pop(value, []))
                self.done += 1
            self.committed[tp] = offset
        if left:
            self._explain(transaction, next(iter(left)))
        if not transaction.records:
            self.offsets_alone += 1
        self._writing.offsets_committed(transaction, rows)

    def _readable(self, tp: TopicPartition, first: int, until: int) -> Iterator[bytes]:
        """The inputs in this part of a partition."""
        history = self._truth.of(self.ids[tp.topic], tp.partition)
        for offset in range(first, until):
            for entry in history.entries.get(offset, ()):
                if entry.status in (Written.PLAIN, Written.COMMITTED):
                    yield entry.value

    def _check(self, transaction: Transaction, value: bytes, outputs: list[bytes]) -> None:
        """The outputs of an input are those that its function makes."""
        right = [sorted(outputs_of(value))]
        if is_poison(value):
            right = [[value]]
        if self._has_dead_letters and self._is_mixed:
            right.append([value])
        if sorted(outputs) not in right:
            raise Violation(
                OutputsToo, f"{transaction} commits {value!r} with {outputs}, not {right[0]}"
            )

    def _explain(self, transaction: Transaction, source: bytes) -> None:
        """There are outputs of an input whose offset the transaction does not commit."""
        for topic, topic_id in self.ids.items():
            for tp, offset in self.committed.items():
                if tp.topic != topic:
                    continue
                history = self._truth.of(topic_id, tp.partition)
                for at in range(offset):
                    if any(entry.value == source for entry in history.entries.get(at, ())):
                        raise Violation(EachOnce, f"{transaction} commits {source!r} once more")
        raise Violation(OffsetsToo, f"{transaction} commits outputs of {source!r}, not its offset")

    def pending(self, ends: Mapping[TopicPartition, int]) -> Iterator[str]:
        """Partitions that are not done, with where they end for readers."""
        for tp, end in ends.items():
            done = self.committed.get(tp, 0)
            if any(True for _ in self._readable(tp, done, end)):
                yield f"{tp.topic}-{tp.partition} is done up to {done} of {end}"
