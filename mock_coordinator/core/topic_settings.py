"""The settings of topics and of groups: Kafka 4.4's tables, in the columns of ``settings``.

The last column is the broker setting that supplies the default. ``mock.topic.id`` is the one
setting that Kafka does not have: CreateTopics takes the topic's id from it (decision 2.6), it is
not stored.
"""

from __future__ import annotations

from typing import Final

from mock_coordinator.core.settings import Setting, read_table

__all__ = ["GROUP_SETTINGS", "TOPIC_ID_SETTING", "TOPIC_SETTINGS"]

TOPIC_ID_SETTING: Final = "mock.topic.id"
"""Topic config with which CreateTopics is told the topic's id: hyphenated hex or Kafka's base64."""

_TOPIC_TABLE: Final = """
cleanup.policy LIST delete compact|delete 4.0 live log.cleanup.policy
compression.gzip.level INT -1 -1..9 4.0 live compression.gzip.level
compression.lz4.level INT 9 1..17 4.0 live compression.lz4.level
compression.type STRING producer uncompressed|zstd|lz4|snappy|gzip|producer 4.0 live \
    compression.type
compression.zstd.level INT 3 -131072..22 4.0 live compression.zstd.level
delete.retention.ms LONG 86400000 0.. 4.0 live log.cleaner.delete.retention.ms
errors.deadletterqueue.group.enable BOOLEAN false - 4.4 live
file.delete.delay.ms LONG 60000 0.. 4.0 live log.segment.delete.delay.ms
flush.messages LONG 9223372036854775807 1.. 4.0 live log.flush.interval.messages
flush.ms LONG 9223372036854775807 0.. 4.0 live
follower.replication.throttled.replicas LIST '' - 4.0 live
index.interval.bytes INT 4096 0.. 4.0 live log.index.interval.bytes
leader.replication.throttled.replicas LIST '' - 4.0 live
local.retention.bytes LONG -2 -2.. 4.0 live log.local.retention.bytes
local.retention.ms LONG -2 -2.. 4.0 live log.local.retention.ms
max.compaction.lag.ms LONG 9223372036854775807 1.. 4.0 live log.cleaner.max.compaction.lag.ms
max.decompressed.message.bytes INT 2147483639 1..2147483639 4.4 live max.decompressed.message.bytes
max.message.bytes INT 1048588 0.. 4.0 live message.max.bytes
message.timestamp.after.max.ms LONG 3600000 0.. 4.0 live log.message.timestamp.after.max.ms
message.timestamp.before.max.ms LONG 9223372036854775807 0.. 4.0 live \
    log.message.timestamp.before.max.ms
message.timestamp.type STRING CreateTime CreateTime|LogAppendTime 4.0 live \
    log.message.timestamp.type
min.cleanable.dirty.ratio DOUBLE 0.5 0..1 4.0 live log.cleaner.min.cleanable.ratio
min.compaction.lag.ms LONG 0 0.. 4.0 live log.cleaner.min.compaction.lag.ms
min.insync.replicas INT 1 1.. 4.0 live min.insync.replicas
preallocate BOOLEAN false - 4.0 live log.preallocate
remote.copy.lag.bytes LONG -1 -1.. 4.4 live log.remote.copy.lag.bytes
remote.copy.lag.ms LONG 0 -1.. 4.4 live log.remote.copy.lag.ms
remote.log.copy.disable BOOLEAN false - 4.0 live
remote.log.delete.on.disable BOOLEAN false - 4.0 live
remote.storage.enable BOOLEAN false - 4.0 live
retention.bytes LONG -1 - 4.0 live log.retention.bytes
retention.ms LONG 604800000 -1.. 4.0 live
segment.bytes INT 1073741824 1048576.. 4.0 live log.segment.bytes
segment.index.bytes INT 10485760 4.. 4.0 live log.index.size.max.bytes
segment.jitter.ms LONG 0 0.. 4.0 live
segment.ms LONG 604800000 1.. 4.0 live
unclean.leader.election.enable BOOLEAN false - 4.0 live unclean.leader.election.enable
"""

_GROUP_TABLE: Final = """
consumer.assignment.interval.ms INT 1000 0.. 4.3 live group.consumer.assignment.interval.ms
consumer.heartbeat.interval.ms INT 5000 1.. 4.0 live group.consumer.heartbeat.interval.ms
consumer.session.timeout.ms INT 45000 1.. 4.0 live group.consumer.session.timeout.ms
errors.deadletterqueue.copy.record.enable BOOLEAN false - 4.4 live
errors.deadletterqueue.topic.name STRING '' - 4.4 live
share.assignment.interval.ms INT 1000 0.. 4.3 live group.share.assignment.interval.ms
share.auto.offset.reset STRING latest - 4.0 live
share.delivery.count.limit INT 5 2..10 4.3 live group.share.delivery.count.limit
share.heartbeat.interval.ms INT 5000 1.. 4.0 live group.share.heartbeat.interval.ms
share.isolation.level STRING read_uncommitted read_committed|read_uncommitted 4.1 live
share.partition.max.record.locks INT 2000 100..10000 4.3 live group.share.partition.max.record.locks
share.record.lock.duration.ms INT 30000 1000..3600000 4.0 live group.share.record.lock.duration.ms
share.renew.acknowledge.enable BOOLEAN true - 4.3 live
share.session.timeout.ms INT 45000 1.. 4.0 live group.share.session.timeout.ms
streams.assignment.interval.ms INT 1000 0.. 4.3 live group.streams.assignment.interval.ms
streams.assignor.name STRING sticky - 4.4 live group.streams.assignors
streams.heartbeat.interval.ms INT 5000 1.. 4.1 live group.streams.heartbeat.interval.ms
streams.initial.rebalance.delay.ms INT 3000 0.. 4.2 live group.streams.initial.rebalance.delay.ms
streams.num.standby.replicas INT 0 0.. 4.1 live group.streams.num.standby.replicas
streams.rack.aware.assignment.tags LIST '' - 4.4 live group.streams.rack.aware.assignment.tags
streams.session.timeout.ms INT 45000 1.. 4.1 live group.streams.session.timeout.ms
"""

TOPIC_SETTINGS: Final[dict[str, Setting]] = read_table(_TOPIC_TABLE)
"""By name."""

GROUP_SETTINGS: Final[dict[str, Setting]] = read_table(_GROUP_TABLE)
"""By name."""
