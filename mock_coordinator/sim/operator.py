"""The administrator: topics come, grow, go and come again; groups are configured at run time."""

from __future__ import annotations

from random import Random
from typing import Final

from kip848_client.core.types import TopicId
from kip848_client.core.wire.messages.configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsRequestAlterableConfig,
    IncrementalAlterConfigsRequestAlterConfigsResource,
)
from kip848_client.core.wire.messages.groups import DeleteGroupsRequest
from kip848_client.core.wire.messages.produce import (
    ProduceRequest,
    ProduceRequestPartitionProduceData,
    ProduceRequestTopicProduceData,
)
from kip848_client.core.wire.messages.topics import (
    CreatePartitionsRequest,
    CreatePartitionsRequestCreatePartitionsTopic,
    CreateTopicsRequest,
    CreateTopicsRequestCreatableTopic,
    DeleteTopicsRequest,
    DeleteTopicsRequestDeleteTopicState,
)
from mock_coordinator.core.logs.batch_writer import NewRecord, encode_batch
from mock_coordinator.core.topics.catalog import Topic
from mock_coordinator.sim.broker_actor import BrokerActor
from mock_coordinator.sim.context import SimContext

__all__ = ["Operator"]

_GROUP_RESOURCE: Final = 32
_SET: Final = 0
_PRODUCE: Final = 12
"""The last version that names topics."""
RECORDS_MAX: Final = 8


class Operator:
    """Administers the broker while it is up; what is asked while it is down does not happen."""

    def __init__(self, context: SimContext, broker: BrokerActor) -> None:
        self._context = context
        self._broker = broker
        self._rng: Random = context.kernel.rng("operator")
        self._known: set[str] = set()
        self._producer: Random = context.kernel.rng("producer")
        self._written = 0

    @property
    def topics(self) -> list[Topic]:
        """The users' topics, by name."""
        known = self._broker.core.broker.catalog.topics
        return [known[name] for name in sorted(known) if not known[name].internal]

    def _version(self, api: str) -> int:
        return self._context.profile.api_versions[api][1]

    def _done(self, what: str, details: str, error_code: int) -> bool:
        suffix = f" !{error_code}" if error_code else ""
        self._context.tell("operator", what, f"{details}{suffix}")
        return error_code == 0

    def create_topic(self, name: str) -> bool:
        """Make a topic of a few partitions; whether that was done."""
        partitions = self._rng.randint(1, self._context.options.partitions_max)
        topic = CreateTopicsRequestCreatableTopic(
            name=name, num_partitions=partitions, replication_factor=1
        )
        response = self._broker.operate(
            CreateTopicsRequest(topics=(topic,)), self._version("CreateTopics")
        )
        if response is None:
            return False
        if name in self._known and not self._context.profile.offsets_by_topic_id:
            self._context.checkers.renamed.add(name)
        self._known.add(name)
        return self._done("create", f"{name}:{partitions}", response.topics[0].error_code)

    def grow_topic(self, topic: Topic) -> None:
        """Give it one or two partitions more."""
        count = topic.partitions + self._rng.randint(1, 2)
        asked = CreatePartitionsRequestCreatePartitionsTopic(
            name=topic.name, count=count, assignments=None
        )
        request = CreatePartitionsRequest(topics=(asked,), timeout_ms=1_000)
        response = self._broker.operate(request, self._version("CreatePartitions"))
        if response is None:
            return
        if self._done("grow", f"{topic.name}:{count}", response.results[0].error_code):
            self._context.probes.reached("topic growth")

    def delete_topic(self, topic: Topic) -> bool:
        """Delete it with its records and committed offsets; whether that was done."""
        was_used = self._is_held(topic.topic_id)
        if self._broker.core.groups.is_loading:
            # a coordinator that loads does not hear of it: the committed offsets outlive the topic
            self._context.checkers.renamed.add(topic.name)
        state = DeleteTopicsRequestDeleteTopicState(name=topic.name, topic_id=bytes(16))
        request = DeleteTopicsRequest(topics=(state,), timeout_ms=1_000)
        response = self._broker.operate(request, self._version("DeleteTopics"))
        if response is None:
            return False
        if was_used:
            self._context.probes.reached("topic deletion")
        return self._done("delete", topic.name, response.responses[0].error_code)

    def recreate_topic(self, topic: Topic) -> bool:
        """Delete it and make another one of the same name, with another id."""
        was_used = self._is_held(topic.topic_id)
        if not self.delete_topic(topic):
            return False
        if was_used:
            self._context.probes.reached("topic re-creation")
        return self.create_topic(topic.name)

    def _is_held(self, topic_id: TopicId) -> bool:
        groups = self._context.checkers.groups.groups.values()
        return any(
            held_id == topic_id
            for group in groups
            for member in group.members.values()
            for held_id, _ in member.held
        )

    def produce(self) -> None:
        """A few records, somewhere."""
        topics = self.topics
        if not topics:
            return
        topic = self._producer.choice(topics)
        records: list[NewRecord] = []
        for _ in range(self._producer.randint(1, RECORDS_MAX)):
            self._written += 1
            records.append(NewRecord(str(self._written).encode()))
        batch = ProduceRequestPartitionProduceData(
            index=self._producer.randrange(topic.partitions),
            records=encode_batch(records, self._context.kernel.now_ms),
        )
        row = ProduceRequestTopicProduceData(name=topic.name, partition_data=(batch,))
        self._broker.operate(ProduceRequest(acks=-1, timeout_ms=1_000, topic_data=(row,)), _PRODUCE)

    def delete_group(self, group_id: str) -> bool:
        """Delete a group with its offsets; refused unless it is empty, as it is for a while when
        all its members are cut off. Returns whether it is gone."""
        request = DeleteGroupsRequest(groups_names=(group_id,))
        response = self._broker.operate(request, self._version("DeleteGroups"))
        if response is None:
            return False
        return self._done("delete", group_id, response.results[0].error_code)

    def configure_group(self, group_id: str) -> None:
        """Change its session timeout or its heartbeat interval."""
        options = self._context.options
        if self._rng.random() < 0.5:
            name = "consumer.session.timeout.ms"
            value = self._rng.randint(options.session_timeout_ms, 45_000)
        else:
            name = "consumer.heartbeat.interval.ms"
            value = self._rng.randint(500, options.session_timeout_ms // 3)
        resource = IncrementalAlterConfigsRequestAlterConfigsResource(
            resource_type=_GROUP_RESOURCE,
            resource_name=group_id,
            configs=(
                IncrementalAlterConfigsRequestAlterableConfig(
                    name=name, config_operation=_SET, value=str(value)
                ),
            ),
        )
        request = IncrementalAlterConfigsRequest(resources=(resource,))
        response = self._broker.operate(request, self._version("IncrementalAlterConfigs"))
        if response is not None:
            error_code = response.responses[0].error_code
            self._done("configure", f"{group_id} {name}={value}", error_code)
