"""DescribeLogDirs (key 35), for the one folder there is (KIP-113).

Kafka's own tool that reassigns partitions asks for it. The folder is the one that the settings
name; whether anything is written to it is another matter. Its total and usable size are given as
unknown.
"""

from __future__ import annotations

from kip848_client.wire.messages.log_dirs import (
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResponseDescribeLogDirsPartition,
    DescribeLogDirsResponseDescribeLogDirsResult,
    DescribeLogDirsResponseDescribeLogDirsTopic,
)
from mock_coordinator.core.apis.call import ApiCall
from mock_coordinator.core.state.broker import Broker
from mock_coordinator.core.topics.catalog import Topic

__all__ = ["describe_log_dirs"]

_Partition = DescribeLogDirsResponseDescribeLogDirsPartition


def describe_log_dirs(call: ApiCall[DescribeLogDirsRequest]) -> DescribeLogDirsResponse:
    """The partitions asked for, or all, with the bytes of their records. Unknown ones are left
    out."""
    broker, request = call.broker, call.request
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
