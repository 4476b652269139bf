"""The administrator, and faults: topics come and go, logs are retained, compacted and cut, leaders
change."""

from __future__ import annotations

from random import Random

from kip848_client.core.wire.messages.delete_records import (
    DeleteRecordsRequest,
    DeleteRecordsRequestDeleteRecordsPartition,
    DeleteRecordsRequestDeleteRecordsTopic,
)
from kip848_client.core.wire.messages.topics import (
    CreatePartitionsRequest,
    CreatePartitionsRequestCreatePartitionsTopic,
    CreateTopicsRequest,
    CreateTopicsRequestCreatableTopic,
    DeleteTopicsRequest,
    DeleteTopicsRequestDeleteTopicState,
)
from mock_coordinator.core.inputs import LeaderMoved, TimerFired
from mock_coordinator.core.logs.batch_writer import thinned_batch
from mock_coordinator.core.logs.log import PartitionLog, StoredBatch
from mock_coordinator.core.logs.record_batch import read_header, records_of
from mock_coordinator.core.topics.catalog import Topic
from mock_coordinator.sim.fetching.brokers import Brokers
from mock_coordinator.sim.fetching.context import FetchContext
from mock_coordinator.sim.log_truth import PartitionTruth

__all__ = ["Operator"]


class Operator:
    """Does one thing at a time to the brokers."""

    def __init__(self, context: FetchContext, brokers: Brokers) -> None:
        self._context = context
        self._brokers = brokers
        self._rng: Random = context.kernel.rng("operator")

    def _version(self, api: str) -> int:
        return self._context.profile.api_versions[api][1]

    def _somewhere(self) -> tuple[Topic, int, PartitionLog, PartitionTruth] | None:
        found = list(self._brokers.logs())
        if not found:
            return None
        topic, partition, log = self._rng.choice(found)
        return topic, partition, log, self._context.truth.of(topic.topic_id, partition)

    # -- topics ------------------------------------------------------------------------------

    def create(self, name: str) -> None:
        """Make a topic of a few partitions, with a replica everywhere or only somewhere."""
        options = self._context.options
        if not self._brokers.some_run():
            self._context.kernel.after(500, lambda: self._create_again(name))
            return
        topic = CreateTopicsRequestCreatableTopic(
            name=name,
            num_partitions=self._rng.randint(1, options.partitions_max),
            replication_factor=self._rng.randint(1, options.brokers),
        )
        request = CreateTopicsRequest(topics=(topic,), timeout_ms=1_000)
        self._brokers.operate(request, self._version("CreateTopics"))
        self._context.tell("operator", "create", f"{name}:{topic.num_partitions}")

    def administer(self) -> None:
        """Delete a topic and mostly make it again, or make one grow."""
        topics = self._brokers.topics
        if not topics:
            return
        topic = self._rng.choice(topics)
        if self._rng.random() < 0.3 and self._brokers.some_run():
            self._grow(topic)
            return
        self._delete(topic)
        delay_ms = 0 if self._rng.random() < 0.5 else self._rng.randint(1, 5_000)
        self._context.kernel.after(delay_ms, lambda: self._create_again(topic.name))

    def _grow(self, topic: Topic) -> None:
        count = topic.partitions + 1
        asked = CreatePartitionsRequestCreatePartitionsTopic(
            name=topic.name, count=count, assignments=None
        )
        request = CreatePartitionsRequest(topics=(asked,), timeout_ms=1_000)
        self._brokers.operate(request, self._version("CreatePartitions"))
        self._context.tell("operator", "grow", f"{topic.name}:{count}")

    def _delete(self, topic: Topic) -> None:
        state = DeleteTopicsRequestDeleteTopicState(name=topic.name, topic_id=bytes(16))
        request = DeleteTopicsRequest(topics=(state,), timeout_ms=1_000)
        self._brokers.operate(request, self._version("DeleteTopics"))
        self._context.tell("operator", "delete", topic.name)
        self._context.probes.reached("a topic deleted")

    def _create_again(self, name: str) -> None:
        if all(topic.name != name for topic in self._brokers.topics):
            self.create(name)

    # -- logs --------------------------------------------------------------------------------

    def retain(self) -> None:
        """Delete the oldest records of a partition."""
        found = self._somewhere()
        if found is None:
            return
        topic, partition, log, _ = found
        offset = self._rng.randint(log.log_start_offset, log.high_watermark)
        asked = DeleteRecordsRequestDeleteRecordsPartition(partition_index=partition, offset=offset)
        row = DeleteRecordsRequestDeleteRecordsTopic(name=topic.name, partitions=(asked,))
        request = DeleteRecordsRequest(topics=(row,), timeout_ms=1_000)
        self._brokers.operate(request, self._version("DeleteRecords"))
        self._context.tell("operator", "retain", f"{topic.name}-{partition} from {offset}")
        self._context.probes.reached("records deleted")

    def compact(self) -> None:
        """Thin a partition out: all of aborted transactions, and some of the others."""
        found = self._somewhere()
        if found is None:
            return
        topic, partition, log, history = found
        stable = log.last_stable_offset
        kept: list[StoredBatch] = []
        for batch in log.batches:
            header = read_header(batch.data)
            last = batch is log.batches[-1]
            if last or header.is_control or batch.last_offset >= stable:
                kept.append(batch)
                continue
            kept += self._thinned(history, batch)
        log.replace(kept)
        self._context.tell("operator", "compact", f"{topic.name}-{partition} below {stable}")
        self._context.probes.reached("a log compacted")

    def _thinned(self, history: PartitionTruth, batch: StoredBatch) -> list[StoredBatch]:
        """What is left of a batch: some records, none, or not even the batch."""
        header = read_header(batch.data)
        stays = []
        for record in records_of(header, batch.data) or ():
            offset = batch.base_offset + record.offset_delta
            if not history.is_aborted(offset) and self._rng.random() < 0.6:
                stays.append(record)
            else:
                history.compacted(offset)
        if not stays and self._rng.random() < 0.5:
            return []
        data = thinned_batch(header, stays)
        return [StoredBatch(batch.base_offset, batch.last_offset, batch.max_timestamp, data)]

    def cut(self) -> None:
        """An unclean election: the new leader lacks the end of the log. (Only what no marker
        follows: the transaction coordinator would have to write it again.)"""
        found = self._somewhere()
        if found is None:
            return
        topic, partition, log, history = found
        decided = [b.last_offset + 1 for b in log.batches if read_header(b.data).is_control]
        lowest = max([log.log_start_offset, *decided])
        if lowest >= log.high_watermark:
            return
        log.truncate(self._rng.randint(lowest, log.high_watermark - 1))
        history.cut(log.high_watermark)
        self._context.tell("operator", "cut", f"{topic.name}-{partition} to {log.high_watermark}")
        self._context.probes.reached("a log cut")
        self._elect(topic, partition)

    # -- leaders -----------------------------------------------------------------------------

    def elect(self) -> None:
        """A clean election: another replica leads, or the same one begins a new epoch."""
        found = self._somewhere()
        if found is not None:
            self._elect(found[0], found[1])

    def _elect(self, topic: Topic, partition: int) -> None:
        core = self._brokers.core
        state = core.broker.partition_state(topic, partition)
        alive = [n.node_id for n in core.broker.nodes if n.up and not n.fenced]
        others = [n for n in alive if n != state.leader]
        if others and self._rng.random() < 0.8:
            # a node without a replica is given the leader's
            node_id = self._rng.choice([n for n in others if n in state.replicas] or others)
            self._brokers.step(LeaderMoved(topic.name, partition, node_id))
        elif core.broker.disk.leaders.elect_again(topic, partition):
            log = self._brokers.log(topic, partition)
            log.begin_epoch(core.broker.partition_state(topic, partition).leader_epoch)
            core.broker.logs.note_growth(topic, partition)  # wakes waiting fetches
            self._brokers.step(TimerFired())
        state = core.broker.partition_state(topic, partition)
        shown = f"{topic.name}-{partition} {state.leader} epoch {state.leader_epoch}"
        self._context.tell("operator", "elect", shown)

    def stop_a_node(self) -> None:
        """A node dies, or is shut down, and comes back."""
        self._brokers.stop_one(self._rng, 6_000)
