"""DescribeLogDirs (key 35) and AlterReplicaLogDirs (key 34), for the one folder there is (KIP-113).

The folder is the one that the settings name; whether anything is written to it is another matter.
Its total and usable size are given as unknown.
"""

from __future__ import annotations

from kip848_client.error_codes import ErrorCode
from kip848_client.wire.messages.log_dirs import (
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirsResponseAlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponseAlterReplicaLogDirTopicResult,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResponseDescribeLogDirsPartition,
    DescribeLogDirsResponseDescribeLogDirsResult,
    DescribeLogDirsResponseDescribeLogDirsTopic,
)
from mock_coordinator.core.broker import Broker
from mock_coordinator.core.topics.catalog import Topic

__all__ = ["alter_replica_log_dirs", "describe_log_dirs"]

_Partition = DescribeLogDirsResponseDescribeLogDirsPartition
_Moved = AlterReplicaLogDirsResponseAlterReplicaLogDirPartitionResult


def describe_log_dirs(broker: Broker, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    """The partitions asked for, or all, with the bytes of their records. Unknown ones are left
    out."""
    if request.topics is None:
        wanted = {t.name: _here(broker, t) for t in broker.catalog.topics.values()}
    else:
        wanted = {}
        for asked in request.topics:
            topic = broker.catalog.topic(asked.topic)
            if topic is not None:
                known = _here(broker, topic)
                wanted[asked.topic] = [i for i in dict.fromkeys(asked.partitions) if i in known]
    topics = [
        DescribeLogDirsResponseDescribeLogDirsTopic(
            name=name,
            partitions=tuple(
                _Partition(
                    partition_index=index,
                    partition_size=_size(broker, broker.catalog.topics[name], index),
                )
                for index in indexes
            ),
        )
        for name, indexes in wanted.items()
        if indexes
    ]
    result = DescribeLogDirsResponseDescribeLogDirsResult(
        log_dir=_folder(broker), topics=tuple(topics)
    )
    return DescribeLogDirsResponse(results=(result,))


def _here(broker: Broker, topic: Topic) -> list[int]:
    """The partitions that this node has."""
    return [
        index
        for index in range(topic.partitions)
        if broker.node_id in broker.partition_state(topic, index).replicas
    ]


def _size(broker: Broker, topic: Topic, index: int) -> int:
    log = broker.logs.of(topic, index)
    return 0 if log is None else sum(len(batch.data) for batch in log.batches)


def _folder(broker: Broker) -> str:
    config = broker.config
    folders = config.text("log.dirs") or config.text("log.dir") or ""
    return folders.split(",")[0].strip()


def alter_replica_log_dirs(
    broker: Broker, request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    """A replica may be moved to the folder that it is in."""
    topics: dict[str, dict[int, ErrorCode]] = {}
    for folder in request.dirs:
        for asked in folder.topics:
            results = topics.setdefault(asked.name, {})
            topic = broker.catalog.topic(asked.name)
            for index in asked.partitions:
                if folder.path != _folder(broker):
                    results[index] = ErrorCode.LOG_DIR_NOT_FOUND
                elif topic is None or index not in _here(broker, topic):
                    results[index] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                else:
                    results[index] = ErrorCode.NONE
    return AlterReplicaLogDirsResponse(
        results=tuple(
            AlterReplicaLogDirsResponseAlterReplicaLogDirTopicResult(
                topic_name=name,
                partitions=tuple(
                    _Moved(partition_index=index, error_code=code)
                    for index, code in results.items()
                ),
            )
            for name, results in topics.items()
        )
    )
