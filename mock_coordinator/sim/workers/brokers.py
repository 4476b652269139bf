"""The brokers of a world of workers.

A heartbeat that arrives after a younger one of its worker, or twice, is not let in: heartbeats have
no number, so that a coordinator may take an old acknowledgement for a new one and give an item away
that still runs. ``sim.invariants`` says more; nobody can do anything about that.
"""

from __future__ import annotations

from typing import Final

from kip848_client.core.wire.messages.connect_group import ConnectGroupHeartbeatRequest
from mock_coordinator.core.cluster import ClusterCore
from mock_coordinator.core.settings.broker_config import BrokerConfig
from mock_coordinator.sim.client_connection import unpack_request
from mock_coordinator.sim.network import Connection, Packet
from mock_coordinator.sim.nodes import Nodes
from mock_coordinator.sim.workers.context import WorkerContext
from mock_coordinator.sim.workers.options import WorkerOptions

__all__ = ["Brokers"]

_JOURNALS: Final = 2


class Brokers(Nodes[WorkerOptions]):
    """All nodes. The tag of a heartbeat is its worker and its number."""

    def __init__(self, context: WorkerContext) -> None:
        options = context.options
        ids = context.kernel.rng("uuid")
        config = BrokerConfig(
            context.profile,
            {
                "offsets.topic.num.partitions": str(_JOURNALS),
                "default.replication.factor": str(options.brokers),
                "group.consumer.min.session.timeout.ms": "1000",
                "group.consumer.session.timeout.ms": str(options.session_timeout_ms),
                "group.consumer.min.heartbeat.interval.ms": "100",
                "group.consumer.heartbeat.interval.ms": str(options.heartbeat_interval_ms),
                "group.consumer.assignment.interval.ms": "0",
                "group.initial.rebalance.delay.ms": str(options.initial_delay_ms),
            },
        )
        core = ClusterCore.create(
            config, lambda: ids.randbytes(16), context.kernel.now_ms, brokers=options.brokers
        )
        self._newest: dict[str, int] = {}
        super().__init__(context, core)

    def _receive(self, node_id: int, connection: Connection, packet: Packet) -> None:
        tag = packet.tag
        if isinstance(unpack_request(packet), ConnectGroupHeartbeatRequest):
            assert isinstance(tag, tuple), "heartbeats say whose they are"
            worker, number = tag
            if packet.again or number < self._newest.get(worker, 0):
                return
            self._newest[worker] = number
        super()._receive(node_id, connection, packet)
