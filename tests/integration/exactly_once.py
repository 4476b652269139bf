"""A program that copies records from one topic to another exactly once, and may crash on purpose.

``python -m tests.integration.exactly_once LIBRARY BOOTSTRAP GROUP_PROTOCOL CRASH_AFTER`` reads the
topic ``in`` as group ``g``, writes every value to ``out`` in transactions that commit the consumed
positions with it, aborts some of them, and ends when nothing comes any more. After ``CRASH_AFTER``
records it kills itself in the middle of a transaction (0: never).
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import Any, Final

__all__ = ["IN", "OUT", "main"]

IN: Final = "in"
OUT: Final = "out"

_GROUP: Final = "g"
_TRANSACTIONAL_ID: Final = "copier"
_PATIENCE_S: Final = 20.0
_IDLE_POLLS: Final = 12


def _crash() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def copy_with_confluent(bootstrap: str, group_protocol: str, crash_after: int) -> None:
    """librdkafka: the group's metadata, member id and epoch included, goes with the positions."""
    import confluent_kafka as confluent

    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "group.id": _GROUP,
        "group.protocol": group_protocol,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
    }
    if group_protocol == "classic":
        settings |= {"session.timeout.ms": 1000, "heartbeat.interval.ms": 200}
    consumer = confluent.Consumer(settings)
    producer = confluent.Producer(
        {"bootstrap.servers": bootstrap, "transactional.id": _TRANSACTIONAL_ID, "linger.ms": 0}
    )
    producer.init_transactions(_PATIENCE_S)
    consumer.subscribe([IN])
    copied = transactions = idle = 0
    while idle < _IDLE_POLLS or not consumer.assignment():
        messages = [m for m in consumer.consume(9, 0.25) if m.error() is None]
        idle = 0 if messages else idle + 1
        if not messages:
            continue
        transactions += 1
        producer.begin_transaction()
        for message in messages:
            producer.produce(OUT, message.value())
        copied += len(messages)
        if crash_after and copied >= crash_after:
            producer.flush(_PATIENCE_S)
            _crash()
        positions = consumer.position(consumer.assignment())
        known = [position for position in positions if position.offset >= 0]
        metadata = consumer.consumer_group_metadata()
        producer.send_offsets_to_transaction(known, metadata, _PATIENCE_S)
        if transactions % 4 == 2:
            producer.abort_transaction(_PATIENCE_S)
            for message in reversed(messages):  # so that the oldest of each partition comes last
                consumer.seek(
                    confluent.TopicPartition(IN, message.partition() or 0, message.offset() or 0)
                )
        else:
            producer.commit_transaction(_PATIENCE_S)
    consumer.close()


async def copy_with_aiokafka(bootstrap: str, crash_after: int) -> None:
    """aiokafka: only the name of the group goes with the positions."""
    import aiokafka

    consumer = aiokafka.AIOKafkaConsumer(
        IN,
        bootstrap_servers=bootstrap,
        group_id=_GROUP,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        isolation_level="read_committed",
        session_timeout_ms=1000,
        heartbeat_interval_ms=200,
    )
    producer = aiokafka.AIOKafkaProducer(
        bootstrap_servers=bootstrap, transactional_id=_TRANSACTIONAL_ID
    )
    await producer.start()
    await consumer.start()
    copied = transactions = idle = 0
    while idle < _IDLE_POLLS or not consumer.assignment():
        batches = await consumer.getmany(timeout_ms=250, max_records=9)
        idle = 0 if batches else idle + 1
        if not batches:
            continue
        transactions += 1
        await producer.begin_transaction()
        for records in batches.values():
            for record in records:
                await producer.send_and_wait(OUT, record.value)
        copied += sum(map(len, batches.values()))
        if crash_after and copied >= crash_after:
            _crash()
        positions = {tp: records[-1].offset + 1 for tp, records in batches.items()}
        await producer.send_offsets_to_transaction(positions, _GROUP)
        if transactions % 4 == 2:
            await producer.abort_transaction()
            for tp, records in batches.items():
                consumer.seek(tp, records[0].offset)
        else:
            await producer.commit_transaction()
    await consumer.stop()
    await producer.stop()


def main(arguments: list[str]) -> None:
    """Copy until nothing comes any more."""
    library, bootstrap, group_protocol, crash_after = arguments
    if library == "confluent":
        copy_with_confluent(bootstrap, group_protocol, int(crash_after))
    else:
        asyncio.run(copy_with_aiokafka(bootstrap, int(crash_after)))


if __name__ == "__main__":
    main(sys.argv[1:])
