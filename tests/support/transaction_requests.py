"""The requests that ``Transactions`` asks for, put to a broker by ``RawTransactions``."""

from __future__ import annotations

from kip848_client.core.produce import _commands as do
from kip848_client.core.produce import _events as ev
from kip848_client.core.produce._model import ProducerId, TransactionVersion
from kip848_client.core.types import TopicPartition
from tests.support.raw_transactions import RawTransactions

__all__ = ["Asked", "describe", "perform", "shown_answer", "shown_request", "turned_away"]

Asked = do.InitProducerId | do.AddPartitions | do.AddOffsets | do.CommitOffsets | do.EndTransaction


def describe(broker: RawTransactions, command: do.DescribeTransaction) -> ev.Event:
    """How far the coordinator is with the markers."""
    ((_, code, state, *_),) = broker.describe(command.transactional_id)
    return ev.TransactionDescribed(command.number, code, state)


def perform(broker: RawTransactions, transactional_id: str, command: Asked) -> ev.Event:
    """Send it in the version that it needs; returns the answer."""
    number, who = command.number, command.producer
    is_v2 = getattr(command, "version", None) is TransactionVersion.V2
    match command:
        case do.InitProducerId():
            answer, got = broker.init(transactional_id, command.transaction_timeout_ms, who)
            return ev.ProducerIdAnswered(number, answer[0], ProducerId(*got))
        case do.AddPartitions():
            _, rows = broker.add_partitions(transactional_id, who, command.partitions)
            codes = {TopicPartition(row[1], row[2]): row[3] for row in rows}
            return ev.TxnAnswered(number, 0, codes)
        case do.AddOffsets():
            code = broker.add_offsets(transactional_id, who, command.group_id)
            return ev.TxnAnswered(number, code)
        case do.CommitOffsets():
            group = command.group
            offsets: dict[tuple[str, int], int] = {
                each: at.offset for each, at in command.offsets.items()
            }
            rows = broker.txn_commit(
                transactional_id,
                who,
                group.group_id,
                offsets,
                5 if is_v2 else 4,
                member=(group.member_id, group.member_epoch),
            )
            codes = {TopicPartition(row[0], row[1]): row[2] for row in rows}
            return ev.TxnAnswered(number, 0, codes)
        case do.EndTransaction():
            version = 5 if is_v2 else 4
            answer, got = broker.end(transactional_id, who, commit=command.commit, version=version)
            after = ProducerId(*got) if is_v2 and not answer[0] else None
            return ev.TxnAnswered(number, answer[0], None, after)


def turned_away(command: Asked, code: int) -> ev.Event:
    """A coordinator that does not do it."""
    match command:
        case do.InitProducerId():
            return ev.ProducerIdAnswered(command.number, code, ProducerId(-1, -1))
        case do.AddPartitions():
            return ev.TxnAnswered(command.number, 0, dict.fromkeys(command.partitions, code))
        case do.CommitOffsets():
            return ev.TxnAnswered(command.number, 0, dict.fromkeys(command.offsets, code))
        case _:
            return ev.TxnAnswered(command.number, code)


def shown_request(command: Asked) -> str:
    """For a trace."""
    what = f" commit={command.commit}" if isinstance(command, do.EndTransaction) else ""
    return f"{type(command).__name__} {tuple(command.producer)}{what}"


def shown_answer(event: ev.Event) -> str:
    """For a trace."""
    if isinstance(event, ev.TxnAnswered):
        codes = event.partitions.values() if event.partitions else ()
        return f"{event.error_code} {sorted(set(codes))} {event.producer}"
    return f"{getattr(event, 'error_code', '')} {getattr(event, 'producer', '')}"
