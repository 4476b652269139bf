"""The result of a fetch for one partition, with checks in Kafka's order."""

from __future__ import annotations

from kip848_client.core.wire.messages.fetch import (
    FetchResponseAbortedTransaction,
    FetchResponseEpochEndOffset,
    FetchResponsePartitionData,
)
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.fetching.sessions import Wanted
from mock_coordinator.core.logs.log import PartitionLog

__all__ = ["read_partition", "refused"]

_READ_COMMITTED = 1


def refused(partition: int, error: ErrorCode) -> FetchResponsePartitionData:
    """The answer of a partition that is there and cannot be read."""
    return FetchResponsePartitionData(
        partition_index=partition,
        error_code=error,
        high_watermark=-1,
        aborted_transactions=None,
        records=b"",
    )


def read_partition(
    partition: int,
    wanted: Wanted,
    log: PartitionLog,
    *,
    isolation_level: int,
    max_bytes: int,
    at_least_one: bool,
) -> FetchResponsePartitionData:
    """What a log answers that may be read: records, or an error, or where it differs from what
    the client has read. ``at_least_one`` batch comes whole, whatever ``max_bytes``."""
    data = FetchResponsePartitionData(
        partition_index=partition,
        high_watermark=log.high_watermark,
        last_stable_offset=log.last_stable_offset,
        log_start_offset=log.log_start_offset,
        aborted_transactions=None,
        records=b"",
    )
    offset, last_epoch = wanted.fetch_offset, wanted.last_fetched_epoch
    if last_epoch >= 0:
        epoch, end = log.end_of_epoch(last_epoch)
        if epoch < 0 or offset < log.log_start_offset:
            return refused(partition, ErrorCode.OFFSET_OUT_OF_RANGE)
        if epoch < last_epoch or end < offset:
            # the client has records that this leader never had (KIP-595)
            data.diverging_epoch = FetchResponseEpochEndOffset(epoch=epoch, end_offset=end)
            return data
    elif not log.log_start_offset <= offset <= log.high_watermark:
        return refused(partition, ErrorCode.OFFSET_OUT_OF_RANGE)
    end = log.readable_end(isolation_level)
    if max_bytes < 0 and offset < end:
        return refused(partition, ErrorCode.UNKNOWN_SERVER_ERROR)
    data.records = log.read(
        offset, max_bytes, isolation_level=isolation_level, at_least_one=at_least_one
    )
    if isolation_level == _READ_COMMITTED:
        cut = not data.records and max_bytes > 0 and offset < end
        # a first batch that does not fit is taken back, and with it what it would have needed
        data.aborted_transactions = None if cut else _aborted(log, offset, len(data.records))
    return data


def _aborted(
    log: PartitionLog, offset: int, size_bytes: int
) -> tuple[FetchResponseAbortedTransaction, ...]:
    if offset >= log.last_stable_offset:
        return ()
    return tuple(
        FetchResponseAbortedTransaction(
            producer_id=aborted.producer_id, first_offset=aborted.first_offset
        )
        for aborted in log.aborted_transactions(offset, size_bytes)
    )
