"""The checkers of a simulated query: what must be true of every record.

The invariant: every offset below a position in Spark's log of commits, and below an offset that the
query commits to its group, was written by this query or committed past by another member. Records
that an administrator skipped, and losses that were announced, are excepted.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field

from kip848_client.core.partition_names import shown
from kip848_client.core.types import TopicPartition
from kip848_client.spark.source.core._begin import position_in
from kip848_client.spark.source.core._manifest import Manifest
from kip848_client.spark.source.core._shared_plan import SharedPlan
from tests.simulation.spark.kafka import Group, Kafka

__all__ = ["Ledger", "Violation"]


class Violation(AssertionError):
    """A promise is broken. The text begins with its name."""


def _numbers() -> set[int]:
    return set()


@dataclass(slots=True)
class Ledger:
    """What became of the records, by their numbers."""

    kafka: Kafka
    is_shared: bool = False
    written: set[int] = field(default_factory=_numbers)
    """In the sink, by batches that are in the log of commits."""
    vouched: set[int] = field(default_factory=_numbers)
    """The same, also if the checkpoint was set back and the sink has them no more."""
    by_others: set[int] = field(default_factory=_numbers)
    """Read by another member, and committed past."""
    passed: set[int] = field(default_factory=_numbers)
    """Below an offset that another member has committed."""
    inherited: set[int] = field(default_factory=_numbers)
    """Of the two above, what counts for an exclusive query: those before it took over."""
    skipped: set[int] = field(default_factory=_numbers)
    """Before the place where the query began, or announced as lost."""
    reset: set[int] = field(default_factory=_numbers)
    """Skipped by an administrator of the group: they do not count for an exclusive query."""
    may_repeat: set[int] = field(default_factory=_numbers)
    """What may be read again, because something happened that the promises except."""
    batches: dict[int, int] = field(default_factory=dict[int, int])
    """The batch that wrote a record first."""
    read: set[TopicPartition] = field(default_factory=set[TopicPartition])
    """Partitions that a manifest of a member knows as its own."""

    def copy(self, kafka: Kafka) -> Ledger:
        """For a query with a copy of the checkpoint."""
        self.kafka, mine = kafka, self.kafka
        try:
            found = deepcopy(self, {id(kafka): kafka})
        finally:
            self.kafka = mine
        return found

    # -- checkers ------------------------------------------------------------------------------

    def check(self, tp: TopicPartition, at: int, epoch: int | None, where: str) -> None:
        """The invariant, for the records of the log as the position knows it."""
        also = (self.by_others, self.reset) if self.is_shared else (self.inherited,)
        covered = (self.written, self.skipped, *also)
        for offset, each in enumerate(self.kafka.log(tp).records[:at]):
            if epoch is not None and each.epoch > epoch:
                continue
            if not any(each.number in some for some in covered):
                raise Violation(f"Unread: {shown(tp)}@{offset} is below {at}, which is {where}")

    def vouch(self, manifest: Manifest, rows: set[int]) -> None:
        """Spark's log of commits has a batch."""
        self.written |= rows
        self.vouched |= rows
        if self.is_shared:
            # what the plain consumer has read since is for both
            self.may_repeat |= rows & self.by_others
        for tp in sorted(manifest.ends):
            position = position_in(manifest, tp)
            if tp.partition >= len(self.kafka.logs) or position is None or not position.is_read:
                continue
            if position.topic_id == self.kafka.topic_id:
                self.check(tp, position.at, manifest.epochs.get(tp), "in the log of commits")

    def write(self, batch: int, rows: list[int], gone: set[int]) -> None:
        """The sink gets the rows of a batch. ``gone``: those that it had and has no more."""
        self.written -= gone - self.passed - self.skipped
        for number in rows:
            first = self.batches.setdefault(number, batch)
            is_excepted = number in self.may_repeat or number in self.kafka.regrown
            if first != batch and not is_excepted:
                raise Violation(f"Repeated: record {number} by batches {first} and {batch}")

    def plan(self, rows: list[int], what: str) -> None:
        """A member has chosen what to read: nothing that others have read and committed."""
        again = set(rows) & self.by_others - self.may_repeat - self.kafka.regrown
        if self.is_shared and again:
            raise Violation(f"ReadOfOthers: {what} has {len(again)} records that others have")

    # -- what happened -------------------------------------------------------------------------

    def begins(self, manifest: Manifest) -> None:
        """The first manifest of an exclusive query: what is before is not its own."""
        for tp, at in manifest.positions.items():
            if tp not in manifest.unread:
                self._skip(tp, at)

    def assigned(self, tps: list[TopicPartition], plan: SharedPlan, group: Group) -> None:
        """A member that has never read a partition begins at the group's offset, if there is any;
        else at the place of the first manifest."""
        for tp in tps:
            position, known = position_in(plan.kept, tp), group.offsets.get(tp)
            if tp not in self.read and known is None and position is not None:
                self._skip(tp, position.at)
            if known is not None and plan.me.on_reset == "group":
                self._skip(tp, known.offset)
            if tp not in self.read and known is not None and known.note is not None:
                # where a run began that has left no manifest
                self._skip(tp, known.offset)

    def plans(self, manifest: Manifest) -> None:
        """Spark has stored a manifest."""
        self.read |= set(manifest.ends) - manifest.unread

    def others_commit(self, tp: TopicPartition, start: int, end: int, by_copies: set[int]) -> None:
        """The plain consumer has read these, and commits. What other runs with the
        checkpoint, or with copies of it, have read before, is committed past by it, too."""
        records = self.kafka.log(tp).records
        passed = {each.number for each in records[:end]}
        # a group's offset does not say of which leader epoch it is: others may skip what is new
        by_copies = by_copies | self.vouched | self.kafka.regrown
        self.by_others |= {each.number for each in records[start:end]} | passed & by_copies
        self.passed |= passed

    def is_reset(self, tp: TopicPartition, to: int) -> None:
        """An administrator has reset an offset of the group."""
        self.reset |= {each.number for each in self.kafka.log(tp).records[:to]}
        self.passed |= self.reset
        self.everything_may_repeat()

    def takes_over(self, manifest: Manifest, group: Group | None) -> None:
        """A shared query becomes exclusive: the work of others counts once."""
        self.inherited |= self.by_others | self.reset
        for tp in manifest.unread:
            if (group is None or tp not in group.offsets) and tp in self.kafka.partitions:
                self._skip(tp, manifest.positions[tp])

    def group_changes(self, manifest: Manifest | None = None) -> None:
        """The group is informed of the checkpoint: its members begin there."""
        self.may_repeat |= self.by_others
        if manifest is not None:
            for tp in manifest.unread.intersection(self.kafka.partitions):
                self._skip(tp, manifest.positions[tp])

    def everything_may_repeat(self) -> None:
        """The promises except what follows."""
        self.may_repeat |= self.by_others | self.batches.keys()

    def loss_is_announced(self, what: str) -> None:
        """Records are lost, and the log says so."""
        for tp in self.kafka.partitions:
            if shown(tp) in what or f"topic {tp.topic} was" in what:
                log = self.kafka.log(tp)
                self.skipped |= {each.number for each in log.records[: log.first]}

    def reads(self, tp: TopicPartition, start: int) -> None:
        """A task reads from here: where records are missing, it says so."""
        if tp in self.kafka.partitions and start < self.kafka.log(tp).first:
            self._skip(tp, self.kafka.log(tp).first)

    def _skip(self, tp: TopicPartition, at: int) -> None:
        self.skipped |= {each.number for each in self.kafka.log(tp).records[:at]}
