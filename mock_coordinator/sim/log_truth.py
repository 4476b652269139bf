"""What was ever in the logs: the truth that each record handed out is compared with.

A log that was cut by an unclean election goes on with other records under the same offsets. So each
partition has *versions*: a cut begins a new one, and a record lives from the version in which it
was written to the one before it was cut off. Two records belong together when some version had
both. A reader that walks from record to record must stay within what one version had: that is what
``Reader`` checks, and what between two records may be missing: markers, aborted and compacted
records, nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto

from kip848_client.core.types import TopicId, TopicIdPartition
from mock_coordinator.core.logs.control_records import marker_commits
from mock_coordinator.core.logs.log import PartitionLog
from mock_coordinator.core.logs.record_batch import (
    NO_PRODUCER_ID,
    BatchHeader,
    read_header,
    records_of,
)

__all__ = ["Entry", "EntryStatus", "LogTruth", "PartitionTruth", "Reader", "WrongRecord"]


class WrongRecord(Exception):
    """A record that was handed out, or left out, and should not have been."""


class EntryStatus(Enum):
    """What a reader may do with a record."""

    PLAIN = auto()
    OPEN = auto()
    COMMITTED = auto()
    ABORTED = auto()
    MARKER = auto()


@dataclass(slots=True)
class Entry:
    """One offset of one version after another. ``died``: the first version without it."""

    value: bytes
    status: EntryStatus
    producer_id: int
    born: int
    died: int | None = None
    compacted: bool = False

    def lives_in(self, version: int) -> bool:
        """Whether this version of the log has it."""
        return self.born <= version and (self.died is None or version < self.died)

    def may_be_left_out(self, *, read_committed: bool) -> bool:
        """Whether a reader may pass it without handing it out."""
        skipped = self.status is EntryStatus.MARKER or (
            read_committed and self.status is EntryStatus.ABORTED
        )
        return skipped or self.compacted

    def may_be_handed_out(self, *, read_committed: bool) -> bool:
        """Whether a reader may get it."""
        if self.status is EntryStatus.MARKER:
            return False
        return not read_committed or self.status in (EntryStatus.PLAIN, EntryStatus.COMMITTED)


@dataclass(slots=True)
class PartitionTruth:
    """All versions of one partition of one topic id."""

    cuts: list[int] = field(default_factory=list[int])
    """Where each version but the first begins to differ from the one before it."""
    end: int = 0
    """Up to where the log was looked at."""
    entries: dict[int, list[Entry]] = field(default_factory=dict[int, list[Entry]])
    _open: dict[int, list[Entry]] = field(default_factory=dict[int, list[Entry]])

    @property
    def version(self) -> int:
        """The newest one."""
        return len(self.cuts)

    def look(self, log: PartitionLog) -> None:
        """Note what was appended since the last look."""
        first = len(log.batches)
        while first and log.batches[first - 1].base_offset >= self.end:
            first -= 1
        for batch in log.batches[first:]:
            header = read_header(batch.data)
            records = list(records_of(header, batch.data) or ())
            if header.is_control:
                status = (
                    EntryStatus.COMMITTED
                    if marker_commits(records[0].key or b"")
                    else EntryStatus.ABORTED
                )
                for entry in self._open.pop(header.producer_id, ()):
                    entry.status = status
            for record in records:
                self._add(batch.base_offset + record.offset_delta, record.value or b"", header)
        self.end = log.high_watermark

    def _add(self, offset: int, value: bytes, header: BatchHeader) -> None:
        status = EntryStatus.PLAIN
        if header.is_control:
            status = EntryStatus.MARKER
        elif header.is_transactional and header.producer_id != NO_PRODUCER_ID:
            status = EntryStatus.OPEN
        entry = Entry(value, status, header.producer_id, self.version)
        if status is EntryStatus.OPEN:
            self._open.setdefault(header.producer_id, []).append(entry)
        self.entries.setdefault(offset, []).append(entry)

    def cut(self, offset: int) -> None:
        """The log was cut: what was at ``offset`` and above is gone."""
        self.cuts.append(min(offset, self.end))
        for at in range(offset, self.end):
            for entry in self.entries.get(at, ()):
                if entry.died is None:
                    entry.died = self.version
        self.end = min(self.end, offset)
        self._open = {
            producer: [entry for entry in entries if entry.died is None]
            for producer, entries in self._open.items()
        }

    def is_aborted(self, offset: int) -> bool:
        """Whether what is at this offset now belongs to an aborted transaction."""
        return any(
            e.died is None and e.status is EntryStatus.ABORTED for e in self.entries.get(offset, ())
        )

    def compacted(self, offset: int) -> None:
        """The record at this offset was thinned out."""
        for entry in self.entries[offset]:
            if entry.died is None:
                entry.compacted = True

    def skipping(
        self, versions: frozenset[int], first: int, after_last: int, *, read_committed: bool
    ) -> frozenset[int]:
        """Of these versions, those in which a reader may pass this range without a record."""
        for offset in range(first, after_last):
            entries = self.entries.get(offset, ())
            versions = frozenset(
                version
                for version in versions
                if any(
                    entry.lives_in(version) and entry.may_be_left_out(read_committed=read_committed)
                    for entry in entries
                )
            )
        return versions

    def holding(
        self, versions: frozenset[int], offset: int, value: bytes, *, read_committed: bool
    ) -> frozenset[int]:
        """Of these versions, those that have this record at this offset for a reader."""
        return frozenset(
            version
            for entry in self.entries.get(offset, ())
            if entry.value == value and entry.may_be_handed_out(read_committed=read_committed)
            for version in versions
            if entry.lives_in(version)
        )


class LogTruth:
    """Of all partitions, also of topics that are gone."""

    def __init__(self) -> None:
        self._all: dict[TopicIdPartition, PartitionTruth] = {}

    def of(self, topic_id: TopicId, partition: int) -> PartitionTruth:
        """Of one partition."""
        return self._all.setdefault((topic_id, partition), PartitionTruth())


@dataclass(slots=True)
class Reader:
    """How far one reader is in one partition, and which versions can have been all that it read."""

    history: PartitionTruth
    read_committed: bool
    next_offset: int
    versions: frozenset[int] = frozenset()
    blank: bool = False
    """The epoch before the position is not known, and nothing was read since: who has seen nothing
    cannot see that it is gone."""
    _seen: int = 0

    def __post_init__(self) -> None:
        """It may begin in any version."""
        self._seen = self.history.version
        self.versions = frozenset(range(self._seen + 1))

    def read(self, offset: int, value: bytes) -> None:
        """A record is handed out. Raises ``WrongRecord``."""
        if offset < self.next_offset:
            raise WrongRecord(f"offset {offset} once more: {self.next_offset} is next")
        self.skip_to(offset)
        committed = self.read_committed
        held = self.history.holding(self._now(), offset, value, read_committed=committed)
        if not held:
            known = self.history.entries.get(offset, [])
            raise WrongRecord(f"{value!r} at {offset}, which was {known} in {sorted(self._now())}")
        self.versions = held
        self.next_offset = offset + 1
        self.blank = False

    def skip_to(self, offset: int) -> None:
        """Everything below ``offset`` is done. Raises ``WrongRecord`` when there are records in
        between."""
        if offset < self.next_offset:
            raise WrongRecord(f"the position goes back from {self.next_offset} to {offset}")
        committed = self.read_committed
        left = self.history.skipping(
            self._now(), self.next_offset, offset, read_committed=committed
        )
        if not left:
            missing = {
                at: self.history.entries.get(at, []) for at in range(self.next_offset, offset)
            }
            raise WrongRecord(f"from {self.next_offset} to {offset}, leaving out {missing}")
        self.versions = left
        self.blank = self.blank and offset == self.next_offset
        self.next_offset = offset

    def _now(self) -> frozenset[int]:
        """The versions that have all that was read. One that began since has it if its forerunner
        had and the cut was not below the position."""
        for version in range(self._seen + 1, self.history.version + 1):
            at = self.history.cuts[version - 1]
            if self.blank or (version - 1 in self.versions and self.next_offset <= at):
                self.versions |= {version}
        self._seen = self.history.version
        return self.versions
