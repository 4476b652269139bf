"""Checkers of what is in the logs: against what users did, and against what they learned."""

from __future__ import annotations

from collections.abc import Iterable

from kip848_client.core.types import TopicPartition
from kip848_client.errors import Kip848Error
from mock_coordinator.core.logs.control_records import marker_commits
from mock_coordinator.core.logs.log import PartitionLog
from mock_coordinator.core.logs.record_batch import BatchHeader, read_header, records_of
from mock_coordinator.sim.invariants import Violation
from mock_coordinator.sim.producing.facts import Facts, Record, RecordStatus, Told, Transaction

__all__ = [
    "Aborted",
    "Acknowledged",
    "Committed",
    "LogChecks",
    "NoZombie",
    "Once",
    "Ordered",
    "Unmixed",
    "Unwritten",
    "Wanted",
    "Whole",
]


class Once:
    """A record is in the log once at most."""


class Ordered:
    """The records that a producer appended to a partition are there in this order."""


class Acknowledged:
    """What was reported as written is in the log, at the reported offset."""


class Unwritten:
    """What was reported as failed, and not as in doubt, is not in the log."""


class Committed:
    """A transaction that was reported as committed is, with all its records and offsets; all of
    them were acknowledged."""


class Aborted:
    """Nothing of a transaction that was reported as failed is committed, and nothing of one with
    refused records or offsets."""


class Wanted:
    """A transaction that is committed was to be."""


class Whole:
    """All of a transaction is committed, or nothing."""


class Unmixed:
    """A marker ends one transaction, not parts of another one."""


class NoZombie:
    """What is committed is of the producer that had the transactional id last; and one that has
    lost the id does not take it back without an order to."""


class LogChecks:
    """Reads the logs as they grow."""

    def __init__(self, facts: Facts) -> None:
        self._ledger = facts
        self._ends: dict[TopicPartition, int] = {}
        self._last: dict[tuple[str, TopicPartition], int] = {}
        self._open: dict[tuple[TopicPartition, int], list[Record]] = {}
        self._holders: dict[str, str] = {}
        self.written = 0
        self.committed = 0
        self.aborted = 0

    # -- logs --------------------------------------------------------------------------------

    def look(self, tp: TopicPartition, log: PartitionLog) -> None:
        """Read what was appended since the last look."""
        end = self._ends.get(tp, 0)
        if log.high_watermark == end:
            return
        first = len(log.batches)
        while first and log.batches[first - 1].base_offset >= end:
            first -= 1
        for batch in log.batches[first:]:
            header = read_header(batch.data)
            records = list(records_of(header, batch.data) or ())
            if header.is_control:
                self._ended(tp, header, commit=marker_commits(records[0].key or b""))
                continue
            for each in records:
                self._appended(tp, header, batch.base_offset + each.offset_delta, each.value or b"")
        self._ends[tp] = log.high_watermark

    def _appended(self, tp: TopicPartition, header: BatchHeader, offset: int, value: bytes) -> None:
        record = self._ledger.records.get(value)
        if record is None or record.tp != tp:
            raise Violation(Unwritten, f"{value!r} in {tp} was never appended")
        if record.offset is not None:
            raise Violation(Once, f"{record} is at {record.offset} and at {offset}")
        key = (record.owner, tp)
        if self._last.get(key, -1) >= record.index:
            raise Violation(Ordered, f"{record} follows its successor")
        self._last[key] = record.index
        record.offset = offset
        self.written += 1
        if record.transaction is None:
            record.status = RecordStatus.PLAIN
            self._check_plain(record)
            return
        if not header.is_transactional:
            raise Violation(Unmixed, f"{record} is in no transaction")
        record.status = RecordStatus.OPEN
        self._open.setdefault((tp, header.producer_id), []).append(record)

    def _check_plain(self, record: Record) -> None:
        if record.told is Told.FAILED and record.status is RecordStatus.PLAIN:
            raise Violation(Unwritten, f"{record} is at {record.offset}, reported as not written")

    def _ended(self, tp: TopicPartition, header: BatchHeader, *, commit: bool) -> None:
        records = self._open.pop((tp, header.producer_id), [])
        ended: dict[Transaction, None] = {}
        for record in records:
            record.status = RecordStatus.COMMITTED if commit else RecordStatus.ABORTED
            assert record.transaction is not None
            ended[record.transaction] = None
        if commit and len(ended) > 1:
            both = " and ".join(map(str, ended))
            raise Violation(Unmixed, f"a marker in {tp.topic}-{tp.partition} commits {both}")
        for transaction in ended:
            self._check_end(transaction, commit=commit)

    # -- offsets -----------------------------------------------------------------------------

    def offset_seen(self, group: str, tp: TopicPartition, offset: int) -> None:
        """A reader of committed offsets sees this one."""
        transaction = self._ledger.by_offset.get(offset)
        if transaction is None or transaction.group != group:
            raise Violation(Wanted, f"no user committed {offset} of {tp} for {group}")
        newest = transaction.offsets[tp]
        if offset != newest:
            raise Violation(
                Whole, f"{transaction} commits {offset} of {tp}, and {newest} was sent after that"
            )
        if tp not in transaction.offsets_seen:
            transaction.offsets_seen.add(tp)
            self._check_end(transaction, commit=True)

    def offsets_committed(
        self, transaction: Transaction, partitions: Iterable[TopicPartition]
    ) -> None:
        """A coordinator of groups commits these offsets of a transaction."""
        transaction.offsets_seen.update(partitions)
        self._check_end(transaction, commit=True)

    # -- transactions ------------------------------------------------------------------------

    def initialised(self, transactional_id: str | None, owner: str) -> None:
        """The coordinator gives the id to this process."""
        if transactional_id is not None:
            self._holders[transactional_id] = owner

    def _check_end(self, transaction: Transaction, *, commit: bool) -> None:
        name = str(transaction)
        statuses = {record.status for record in transaction.records}
        if commit and not transaction.is_commit_asked:
            raise Violation(Wanted, f"{name} is committed, and no user asked for that")
        if {RecordStatus.COMMITTED, RecordStatus.ABORTED} <= statuses:
            raise Violation(Whole, f"{name} is committed in one place and aborted in another")
        if transaction.offsets_seen and RecordStatus.ABORTED in statuses:
            raise Violation(Whole, f"{name} is aborted, and offsets of it are committed")
        if commit:
            self.committed += 1
            holder = self._holders.get(transaction.transactional_id)
            if holder != transaction.owner:
                raise Violation(NoZombie, f"{name} is committed, and {holder} has its id")
            self._check_failed(transaction)
            self._check_whole(transaction)
        else:
            self.aborted += 1
            if transaction.told is Told.DONE:
                raise Violation(Committed, f"{name} is aborted, and was reported as committed")

    def _check_whole(self, transaction: Transaction) -> None:
        """It is committed: of everything the producer had heard that it is there."""
        for record in transaction.records:
            if record.told is not Told.DONE:
                raise Violation(Whole, f"{transaction} is committed, {record} not acknowledged")
        if transaction.offsets and transaction.offsets_told is not Told.DONE:
            raise Violation(Whole, f"{transaction} is committed, its offsets not acknowledged")

    def _check_failed(self, transaction: Transaction) -> None:
        """Nothing of it may be visible."""
        is_visible = transaction.offsets_seen or any(
            record.status is RecordStatus.COMMITTED for record in transaction.records
        )
        why = transaction.refused
        if transaction.told is Told.FAILED:
            why = "it was reported as aborted"
        if why and is_visible:
            raise Violation(Aborted, f"{transaction} is committed, and {why}")

    # -- what users learn --------------------------------------------------------------------

    def acknowledged(self, records: Iterable[tuple[Record, int]]) -> None:
        """These are reported as written, at these offsets (-1: somewhere)."""
        for record, offset in records:
            record.told = Told.DONE
            if record.offset is None:
                raise Violation(Acknowledged, f"{record} is reported as written, and is not")
            if offset >= 0 and offset != record.offset:
                raise Violation(Acknowledged, f"{record} is at {record.offset}, not at {offset}")

    def failed(self, record: Record, *, maybe_written: bool) -> None:
        """A record is reported as failed."""
        record.told = Told.IN_DOUBT if maybe_written else Told.FAILED
        transaction = record.transaction
        if transaction is None:
            self._check_plain(record)
            return
        if not transaction.refused:
            transaction.refused = f"{record} had failed"
        self._check_failed(transaction)

    def offsets_told(self, transaction: Transaction, error: Kip848Error | None) -> None:
        """What became of its offsets."""
        transaction.offsets_told = Told.DONE if error is None else Told.FAILED
        if error is not None:
            transaction.refused = transaction.refused or f"its offsets were refused: {error}"
            self._check_failed(transaction)

    def told(self, transaction: Transaction, told: Told) -> None:
        """The user learns what became of it."""
        transaction.told = told
        if told is Told.FAILED:
            self._check_failed(transaction)
        if told is not Told.DONE:
            return
        for record in transaction.records:
            if record.told is not Told.DONE:
                raise Violation(Committed, f"{record} is committed and was not acknowledged")
            if record.status is RecordStatus.ABORTED:
                raise Violation(Committed, f"{record} is reported as committed, and is aborted")

    def unsettled(self) -> Iterable[str]:
        """What is not as it was reported, or not known, and may yet become so."""
        for transaction in self._ledger.transactions:
            records = transaction.records
            if any(record.status is RecordStatus.OPEN for record in records):
                yield f"{transaction} is open"
            left = transaction.offsets.keys() - transaction.offsets_seen
            if transaction.told is Told.DONE:
                if any(record.status is not RecordStatus.COMMITTED for record in records):
                    yield f"{transaction} is not visible"
                if left:
                    yield f"the offsets of {transaction} are not"
            elif transaction.offsets_seen and left:
                yield f"only some offsets of {transaction} are there"
            committed = [record.status is RecordStatus.COMMITTED for record in records]
            if any(committed) and not all(committed):
                yield f"only some records of {transaction} are visible"
            if any(committed) and left:
                yield f"{transaction} is committed without its offsets"
