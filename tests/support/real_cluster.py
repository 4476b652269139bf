"""Several real Kafka brokers of one cluster for a test: KRaft, the first is also the controller, or
each of them is one.

::

    with RealCluster.start("4.4.0", {"offsets.topic.num.partitions": "6"}) as cluster:
        cluster.ask(2, request, version)
        cluster.stop(3)

Raises what ``RealKafka`` raises. Each broker takes about 340 MB.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from kip848_client.core.wire.messages.metadata import MetadataRequest
from tests.support.broker_folder import broker_folder
from tests.support.kafka_broker import BrokerFailedError, KafkaBroker, free_ports, new_cluster_id
from tests.support.wire_connection import WireConnection

__all__ = ["RealCluster"]

_HOST: Final = "127.0.0.1"
_READY_TIMEOUT_S: Final = 30
_BROKERS: Final = 3
_LISTENERS: Final = ("PLAINTEXT", "PROXIED", "CONTROLLER")


class RealCluster:
    """Three running brokers with ids 1, 2, 3 in racks r1, r2, r3; made by ``start``."""

    def __init__(self, brokers: dict[int, KafkaBroker], behind: dict[int, int]) -> None:
        self._brokers = brokers
        self.behind = behind
        """The port behind the proxy, by broker."""

    @classmethod
    @contextlib.contextmanager
    def start(
        cls,
        version: str,
        configs: Mapping[str, str] | None = None,
        *,
        advertised: Mapping[int, int] | None = None,
        controllers: int = 1,
        log_levels: Mapping[str, str] | None = None,
        keep: Path | None = None,
    ) -> Generator[RealCluster]:
        """Run the brokers for the length of a ``with`` block, with these settings each.

        ``advertised`` are ports of a proxy, by broker: each broker has a listener more then, for
        what comes through the proxy (``behind``), where clients are sent to those ports. With three
        ``controllers`` any broker can be missed. ``keep`` is where the logs and the data of the
        brokers are when the block has ended."""
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(broker_folder())
            made = _made(
                version, folder, configs or {}, advertised or {}, controllers, log_levels or {}
            )
            brokers, behind = made
            if keep is not None:
                stack.callback(_keep, folder, keep)
            for broker in brokers.values():
                # nobody needs the data any more; in good order it takes half a minute without the
                # controller, which one of them is
                stack.callback(broker.kill)
            # as many at a time as it takes: one of several controllers waits for another one
            with ThreadPoolExecutor(controllers) as threads:
                list(threads.map(KafkaBroker.start, brokers.values()))
            cluster = cls(brokers, behind)
            cluster.await_brokers(tuple(brokers))
            yield cluster

    @property
    def bootstrap(self) -> str:
        """``host:port,..`` of all brokers, running or not."""
        return ",".join(f"{_HOST}:{broker.port}" for broker in self._brokers.values())

    def ask(self, node_id: int, request: Any, version: int) -> Any:
        """The answer of one broker."""
        with WireConnection(_HOST, self._brokers[node_id].port) as connection:
            return connection.request(request, version)

    def stop(self, node_id: int) -> None:
        """Shut a broker down in good order; returns when the others know."""
        self._brokers[node_id].stop()
        self.await_brokers(tuple(n for n, b in self._brokers.items() if b.is_running))

    def crash(self, node_id: int) -> None:
        """Kill a broker; the others notice it when its session is over."""
        self._brokers[node_id].kill()

    def restart(self, node_id: int) -> None:
        """Start a broker again that was stopped or killed, with its data, at its ports."""
        self._brokers[node_id].start()

    def log_tail(self, node_id: int) -> str:
        """The end of a broker's log, for a failure message."""
        return self._brokers[node_id].log_tail()

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


def _keep(folder: Path, where: Path) -> None:
    for each in folder.iterdir():
        kept = where / f"broker-{each.name}"
        kept.mkdir(parents=True)
        shutil.copy(each / "broker.log", kept)
        shutil.copytree(each / "data", kept / "data")


def _made(
    version: str,
    folder: Path,
    configs: Mapping[str, str],
    advertised: Mapping[int, int],
    controllers: int,
    log_levels: Mapping[str, str],
) -> tuple[dict[int, KafkaBroker], dict[int, int]]:
    """The brokers by id, not started, and their ports behind a proxy."""
    cluster_id = new_cluster_id()
    ids = range(1, _BROKERS + 1)
    found = free_ports(2 * _BROKERS + controllers)
    ports = dict(zip(ids, found, strict=False))
    behind = dict(zip(advertised, found[_BROKERS:], strict=False))
    quorum = dict(zip(ids, found[2 * _BROKERS :], strict=False))
    brokers: dict[int, KafkaBroker] = {}
    for node_id, port in ports.items():
        listeners = {"PLAINTEXT": port}
        told = {"PLAINTEXT": port}
        if node_id in behind:
            listeners["PROXIED"] = behind[node_id]
            told["PROXIED"] = advertised[node_id]
        if node_id in quorum:
            listeners["CONTROLLER"] = quorum[node_id]
        settings = {
            "node.id": str(node_id),
            "process.roles": "broker,controller" if node_id in quorum else "broker",
            "controller.quorum.voters": ",".join(f"{n}@{_HOST}:{at}" for n, at in quorum.items()),
            "listeners": _listed(listeners),
            "advertised.listeners": _listed(told),
            "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in _LISTENERS),
            "inter.broker.listener.name": "PLAINTEXT",
            "broker.rack": f"r{node_id}",
            **configs,
        }
        broker = KafkaBroker(
            version,
            folder / str(node_id),
            settings,
            cluster_id=cluster_id,
            log_levels=log_levels,
        )
        broker.port = port
        brokers[node_id] = broker
    return brokers, behind


def _listed(ports: Mapping[str, int]) -> str:
    return ",".join(f"{name}://{_HOST}:{port}" for name, port in ports.items())
