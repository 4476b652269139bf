"""The settings of groups, in the columns of ``settings.setting`` and in the order in which a broker
checks their values. The last column is the broker setting that supplies the default."""

from __future__ import annotations

from typing import Final

from mock_coordinator.core.settings.setting import Setting, read_table

__all__ = ["GROUP_SETTINGS"]

_TABLE: Final = """
consumer.session.timeout.ms INT 45000 1.. 4.0 live group.consumer.session.timeout.ms
consumer.heartbeat.interval.ms INT 5000 1.. 4.0 live group.consumer.heartbeat.interval.ms
consumer.assignment.interval.ms INT 1000 0.. 4.3 live group.consumer.assignment.interval.ms
share.session.timeout.ms INT 45000 1.. 4.0 live group.share.session.timeout.ms
share.heartbeat.interval.ms INT 5000 1.. 4.0 live group.share.heartbeat.interval.ms
share.record.lock.duration.ms INT 30000 1000.. 4.0 live group.share.record.lock.duration.ms
share.delivery.count.limit INT 5 2.. 4.3 live group.share.delivery.count.limit
share.partition.max.record.locks INT 2000 100.. 4.3 live group.share.partition.max.record.locks
share.auto.offset.reset STRING latest - 4.0 live
share.isolation.level STRING read_uncommitted read_committed|read_uncommitted 4.1 live
share.renew.acknowledge.enable BOOLEAN true - 4.3 live
share.assignment.interval.ms INT 1000 0.. 4.3 live group.share.assignment.interval.ms
streams.session.timeout.ms INT 45000 1.. 4.1 live group.streams.session.timeout.ms
streams.heartbeat.interval.ms INT 5000 1.. 4.1 live group.streams.heartbeat.interval.ms
streams.num.standby.replicas INT 0 0.. 4.1 live group.streams.num.standby.replicas
streams.initial.rebalance.delay.ms INT 3000 0.. 4.2 live group.streams.initial.rebalance.delay.ms
streams.assignment.interval.ms INT 1000 0.. 4.3 live group.streams.assignment.interval.ms
streams.rack.aware.assignment.tags LIST '' - 4.4 live group.streams.rack.aware.assignment.tags
streams.assignor.name STRING sticky - 4.4 live group.streams.assignors
errors.deadletterqueue.topic.name STRING '' - 4.4 live
errors.deadletterqueue.copy.record.enable BOOLEAN false - 4.4 live
"""

GROUP_SETTINGS: Final[dict[str, Setting]] = read_table(_TABLE)
"""By name."""
