"""A data folder of the bundled broker: records, committed offsets, a transactional id."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path
from typing import Final

from kip848_client.core.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kip848_client.core.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kip848_client.core.wire.messages.transactions import InitProducerIdRequest
from mock_coordinator import MockBroker, VirtualClock

__all__ = [
    "COMMITTED",
    "CONFIG",
    "FOLDER",
    "GROUP",
    "MEMBER",
    "PRODUCED",
    "TOPIC",
    "TRANSACTION",
    "make",
    "opened",
]

FOLDER: Final = "data"
TOPIC: Final = "orders"
TOPIC_ID: Final = bytes(range(16))
GROUP: Final = "billing"
MEMBER: Final = "member-1"
TRANSACTION: Final = "billing-transactions"
PRODUCED: Final = {0: [b"a", b"b", b"c"], 1: [b"d"]}
"""Values by partition."""
COMMITTED: Final = 2
"""In partition 0."""
CONFIG: Final = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
}
_START_MS: Final = 1_750_000_000_000


def opened(folder: Path) -> MockBroker:
    """A broker on the folder, without a port; the same requests give the same bytes."""
    counter = itertools.count(1)
    return MockBroker(
        {},
        listen=False,
        clock=VirtualClock(_START_MS),
        data_dir=folder,
        config=CONFIG,
        new_uuid=lambda: next(counter).to_bytes(16, "big"),
        profile="4.3",
    )


def make(folder: Path) -> None:
    """Write the folder."""
    shutil.rmtree(folder / FOLDER, ignore_errors=True)
    broker = opened(folder / FOLDER)
    broker.create_topic(TOPIC, len(PRODUCED), topic_id=TOPIC_ID)
    for partition, values in PRODUCED.items():
        broker.produce(TOPIC, *values, partition=partition)
    connection = broker.connect()
    joined = connection.ask(
        ConsumerGroupHeartbeatRequest(
            group_id=GROUP,
            member_id=MEMBER,
            member_epoch=0,
            rebalance_timeout_ms=30_000,
            subscribed_topic_names=(TOPIC,),
            topic_partitions=(),
        ),
        1,
    )
    wanted = OffsetCommitRequestPartition(partition_index=0, committed_offset=COMMITTED)
    request = OffsetCommitRequest(
        group_id=GROUP,
        generation_id_or_member_epoch=joined.member_epoch,
        member_id=MEMBER,
        topics=(OffsetCommitRequestTopic(name=TOPIC, partitions=(wanted,)),),
    )
    committed = connection.ask(request, 9)
    begun = connection.ask(
        InitProducerIdRequest(transactional_id=TRANSACTION, transaction_timeout_ms=60_000), 4
    )
    broker.close()
    (folder / FOLDER / "lock").unlink()
    codes = joined.error_code, committed.topics[0].partitions[0].error_code, begun.error_code
    assert codes == (0, 0, 0), codes
