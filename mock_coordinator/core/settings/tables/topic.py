"""The settings of topics, in the columns of ``settings.setting`` and in the order in which a broker
checks their values, which determines the error.

The last column is the broker setting that supplies the default. ``mock.topic.id`` is the only
setting that Kafka does not have: CreateTopics takes the topic's id from it, and does not store it.
"""

from __future__ import annotations

from typing import Final

from mock_coordinator.core.settings.setting import Setting, read_table

__all__ = ["TOPIC_ID_SETTING", "TOPIC_SETTINGS"]

TOPIC_ID_SETTING: Final = "mock.topic.id"
"""Topic config that gives CreateTopics the topic's id: hyphenated hex or Kafka's base64."""

_TABLE: Final = """
segment.bytes INT 1073741824 14.. 4.0 live log.segment.bytes
segment.bytes INT 1073741824 1048576.. 4.1 live log.segment.bytes
segment.ms LONG 604800000 1.. 4.0 live log.roll.ms
segment.jitter.ms LONG 0 0.. 4.0 live log.roll.jitter.ms
segment.index.bytes INT 10485760 4.. 4.0 live log.index.size.max.bytes
flush.messages LONG 9223372036854775807 1.. 4.0 live log.flush.interval.messages
flush.ms LONG 9223372036854775807 0.. 4.0 live log.flush.interval.ms
retention.bytes LONG -1 - 4.0 live log.retention.bytes
retention.ms LONG 604800000 -1.. 4.0 live log.retention.ms
max.message.bytes INT 1048588 0.. 4.0 live message.max.bytes
max.decompressed.message.bytes INT 2147483639 1..2147483639 4.2 live max.decompressed.message.bytes
max.decompressed.message.bytes INT 2147483639 1..2147483639 4.3 absent
max.decompressed.message.bytes INT 2147483639 1..2147483639 4.4 live max.decompressed.message.bytes
index.interval.bytes INT 4096 0.. 4.0 live log.index.interval.bytes
delete.retention.ms LONG 86400000 0.. 4.0 live log.cleaner.delete.retention.ms
min.compaction.lag.ms LONG 0 0.. 4.0 live log.cleaner.min.compaction.lag.ms
max.compaction.lag.ms LONG 9223372036854775807 1.. 4.0 live log.cleaner.max.compaction.lag.ms
file.delete.delay.ms LONG 60000 0.. 4.0 live log.segment.delete.delay.ms
min.cleanable.dirty.ratio DOUBLE 0.5 0..1 4.0 live log.cleaner.min.cleanable.ratio
cleanup.policy LIST delete compact|delete 4.0 live log.cleanup.policy
unclean.leader.election.enable BOOLEAN false - 4.0 live unclean.leader.election.enable
min.insync.replicas INT 1 1.. 4.0 live min.insync.replicas
compression.type STRING producer uncompressed|zstd|lz4|snappy|gzip|producer 4.0 live \
    compression.type
compression.gzip.level INT -1 -1..9 4.0 live compression.gzip.level
compression.lz4.level INT 9 1..17 4.0 live compression.lz4.level
compression.zstd.level INT 3 -131072..22 4.0 live compression.zstd.level
preallocate BOOLEAN false - 4.0 live log.preallocate
message.timestamp.type STRING CreateTime CreateTime|LogAppendTime 4.0 live \
    log.message.timestamp.type
message.timestamp.before.max.ms LONG 9223372036854775807 0.. 4.0 live \
    log.message.timestamp.before.max.ms
message.timestamp.after.max.ms LONG 3600000 0.. 4.0 live log.message.timestamp.after.max.ms
leader.replication.throttled.replicas LIST '' replicas 4.0 live
follower.replication.throttled.replicas LIST '' replicas 4.0 live
remote.storage.enable BOOLEAN false - 4.0 live
local.retention.ms LONG -2 -2.. 4.0 live log.local.retention.ms
local.retention.bytes LONG -2 -2.. 4.0 live log.local.retention.bytes
remote.log.copy.disable BOOLEAN false - 4.0 live
remote.copy.lag.ms LONG 0 -1.. 4.4 live log.remote.copy.lag.ms
remote.copy.lag.bytes LONG -1 -1.. 4.4 live log.remote.copy.lag.bytes
remote.log.delete.on.disable BOOLEAN false - 4.0 live
errors.deadletterqueue.group.enable BOOLEAN false - 4.4 live
"""


TOPIC_SETTINGS: Final[dict[str, Setting]] = read_table(_TABLE)
"""By name."""
