"""The brokers of a world of workers: no outdated heartbeat reaches them."""

from __future__ import annotations

from kip848_client.core.wire.messages.connect_group import ConnectGroupHeartbeatRequest
from mock_coordinator.sim.client_connection import unpack_request
from mock_coordinator.sim.network import Connection, Packet
from mock_coordinator.sim.nodes import Nodes
from mock_coordinator.sim.workers.context import WorkerContext
from mock_coordinator.sim.workers.options import WorkerOptions

__all__ = ["Brokers"]


class Brokers(Nodes[WorkerOptions]):
    """All nodes. The tag of a heartbeat is its worker and its number."""

    def __init__(self, context: WorkerContext) -> None:
        options = context.options
        settings = {
            "offsets.topic.num.partitions": "2",
            "group.consumer.min.session.timeout.ms": "1000",
            "group.consumer.session.timeout.ms": str(options.session_timeout_ms),
            "group.consumer.min.heartbeat.interval.ms": "100",
            "group.consumer.heartbeat.interval.ms": str(options.heartbeat_interval_ms),
            "group.consumer.assignment.interval.ms": "0",
            "group.initial.rebalance.delay.ms": str(options.initial_delay_ms),
        }
        super().__init__(context, settings)

    def _receive(self, node_id: int, connection: Connection, packet: Packet) -> None:
        tag = packet.tag
        if isinstance(unpack_request(packet), ConnectGroupHeartbeatRequest):
            assert isinstance(tag, tuple), "heartbeats say whose they are"
            worker, number = tag
            if self.is_outdated(packet, worker, number):
                return
        super()._receive(node_id, connection, packet)
