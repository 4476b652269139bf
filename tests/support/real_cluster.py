"""Several real Kafka brokers of one cluster for a test: KRaft, the first is also the controller.

::

    with RealCluster.start("4.4.0", {"offsets.topic.num.partitions": "6"}) as cluster:
        cluster.ask(2, request, version)
        cluster.stop(3)

Raises what ``RealKafka`` raises. Each broker takes about 340 MB.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any, Final

from kip848_client.wire.messages.metadata import MetadataRequest
from tests.support.broker_folder import broker_folder
from tests.support.kafka_broker import BrokerFailedError, KafkaBroker, free_ports, new_cluster_id
from tests.support.wire_connection import WireConnection

__all__ = ["RealCluster"]

_HOST: Final = "127.0.0.1"
_READY_TIMEOUT_S: Final = 30
_BROKERS: Final = 3


class RealCluster:
    """Three running brokers with ids 1, 2, 3 in racks r1, r2, r3; made by ``start``."""

    def __init__(self, brokers: dict[int, KafkaBroker]) -> None:
        self._brokers = brokers

    @classmethod
    @contextlib.contextmanager
    def start(
        cls, version: str, configs: Mapping[str, str] | None = None
    ) -> Generator[RealCluster]:
        """Run the brokers for the length of a ``with`` block, with these settings each."""
        with contextlib.ExitStack() as stack:
            brokers = _made(version, stack.enter_context(broker_folder()), configs or {})
            for broker in brokers.values():
                # nobody needs the data any more; in good order it takes half a minute without the
                # controller, which one of them is
                stack.callback(broker.kill)
            for broker in brokers.values():
                broker.start()
            cluster = cls(brokers)
            cluster.await_brokers(tuple(brokers))
            yield cluster

    def ask(self, node_id: int, request: Any, version: int) -> Any:
        """The answer of one broker."""
        with WireConnection(_HOST, self._brokers[node_id].port) as connection:
            return connection.request(request, version)

    def stop(self, node_id: int) -> None:
        """Shut a broker down in good order; returns when the others know."""
        self._brokers[node_id].stop()
        self.await_brokers(tuple(n for n, b in self._brokers.items() if b.is_running))

    def await_brokers(self, node_ids: tuple[int, ...]) -> None:
        """Return once every broker of these knows of them and of no other."""
        deadline = time.monotonic() + _READY_TIMEOUT_S
        for node_id in node_ids:
            while True:
                answer = self.ask(node_id, MetadataRequest(topics=()), 12)
                known = tuple(sorted(broker.node_id for broker in answer.brokers))
                if known == node_ids:
                    break
                if time.monotonic() > deadline:
                    raise BrokerFailedError(f"broker {node_id} knows of {known}, not {node_ids}")
                time.sleep(0.05)


def _made(version: str, folder: Path, configs: Mapping[str, str]) -> dict[int, KafkaBroker]:
    """The brokers by id, not started."""
    cluster_id = new_cluster_id()
    controller, *ports = free_ports(_BROKERS + 1)
    brokers: dict[int, KafkaBroker] = {}
    for node_id, port in enumerate(ports, start=1):
        own = f"PLAINTEXT://{_HOST}:{port}"
        first = node_id == 1
        settings = {
            "node.id": str(node_id),
            "process.roles": "broker,controller" if first else "broker",
            "controller.quorum.voters": f"1@{_HOST}:{controller}",
            "listeners": f"{own},CONTROLLER://{_HOST}:{controller}" if first else own,
            "advertised.listeners": own,
            "broker.rack": f"r{node_id}",
            **configs,
        }
        broker = KafkaBroker(version, folder / str(node_id), settings, cluster_id=cluster_id)
        broker.port = port
        brokers[node_id] = broker
    return brokers
