"""A broker whose administrator switched off what can be: no deletion, no creation on mention, no
group of the consumer protocol."""

from __future__ import annotations

from mock_coordinator.batches import NewRecord, encode_batch
from tests.contract.dialogues.step import IdOf, Step, ask

__all__ = ["SETTINGS", "STEPS"]

SETTINGS = {
    "auto.create.topics.enable": "false",
    "delete.topic.enable": "false",
    "max.request.partition.size.limit": "2",
    "log.cleanup.policy": "compact",
    "group.coordinator.rebalance.protocols": "classic",
}
"""What the broker is started with."""

_BATCH = encode_batch([NewRecord(b"value", key=b"key")], 1000)


def _metadata(*names: str, version: int | None = None) -> Step:
    return ask("Metadata", version, topics=[{"name": name} for name in names])


STEPS: list[Step] = [
    ask(
        "CreateTopics",
        topics=[{"name": "a", "num_partitions": 3, "replication_factor": 1}],
        timeout_ms=5000,
    ),
    _metadata("never", "a", "a/b"),
    _metadata("never", version=1),
    _metadata("__transaction_state"),
    *(
        ask("DeleteTopics", version, topic_names=["a", "never"], timeout_ms=5000)
        for version in (1, 2, 3, 4, 5)
    ),
    ask("DeleteTopics", topics=[{"name": "a"}, {"name": "never"}], timeout_ms=5000),
    ask("DeleteTopics", topics=[{"name": None, "topic_id": IdOf("a")}], timeout_ms=5000),
    ask("DeleteTopics", topics=[], timeout_ms=5000),
    _metadata("a"),
    ask("DescribeTopicPartitions", topics=[{"name": "a"}]),
    ask(
        "Produce",
        9,
        acks=-1,
        timeout_ms=5000,
        topic_data=[{"name": "a", "partition_data": [{"index": 0, "records": _BATCH}]}],
    ),
    ask(
        "DeleteRecords",
        timeout_ms=1000,
        topics=[{"name": "a", "partitions": [{"partition_index": 0, "offset": 1}]}],
    ),
    ask(
        "DescribeConfigs",
        resources=[
            {
                "resource_type": 4,
                "resource_name": "1",
                "configuration_keys": ["delete.topic.enable", "log.cleanup.policy"],
            },
            {
                "resource_type": 2,
                "resource_name": "a",
                "configuration_keys": ["cleanup.policy"],
            },
        ],
        include_synonyms=True,
    ),
    ask(
        "ConsumerGroupHeartbeat",
        group_id="g",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=5000,
        subscribed_topic_names=["a"],
        topic_partitions=[],
    ),
    ask("ConsumerGroupHeartbeat", group_id="", member_id="", member_epoch=-7),
    ask("ConsumerGroupDescribe", group_ids=["g", "never", "g"]),
    ask("ConsumerGroupDescribe", group_ids=[]),
]
