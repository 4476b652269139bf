"""One Apache Kafka broker as a child process: KRaft, single node, loopback only.

``KafkaBroker`` formats its folder, starts the JVM, waits for the port and stops it by its own
process id. It knows nothing of the protocol; ``tests.support.real_kafka`` adds the part that
talks to the broker.

A broker must not outlive the tests, however they end. So each has a small watcher process that
reads from a pipe which only we hold: when this process dies, the pipe closes and the watcher ends
the broker.
"""

from __future__ import annotations

import base64
import contextlib
import os
import random
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle, islice
from pathlib import Path
from typing import Final

from mock_coordinator.core.release_line import ReleaseLine
from tests.support.class_archive import ClassArchive
from tests.support.kafka_jars import find_java, kafka_libs

__all__ = ["BrokerFailedError", "KafkaBroker", "free_ports", "new_cluster_id"]

_HOST: Final = "127.0.0.1"
_START_TIMEOUT_S: Final = 40
_STOP_TIMEOUT_S: Final = 15
_START_ATTEMPTS: Final = 3
_JVM: Final = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_LOGGING: Final = (
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dorg.slf4j.simpleLogger.showDateTime=true",
    "-Dorg.slf4j.simpleLogger.dateTimeFormat=HH:mm:ss.SSS",
)
_LOG_TAIL_LINES: Final = 60
_META: Final = "meta.properties"

_BASE: Final = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}


_SWITCHED_OFF: Final = {
    "share.version": ReleaseLine(4, 2),
    "streams.version": ReleaseLine(4, 2),
}
"""Features whose groups the mock does not implement -> the first release line that finalizes them
unless told otherwise."""


_formatted: Final[dict[object, dict[str, bytes]]] = {}
"""What the tool that formats has written, by file: it takes a second, and writes the same for each
cluster of one kind."""


_PORTS: Final = range(12_000, 30_000)
_PORT_SHARES: Final = 8
_CHANCE: Final = random.SystemRandom()


class BrokerFailedError(AssertionError):
    """The broker did not start or died; the message has the end of its log."""


def free_ports(count: int) -> list[int]:
    """Ports that nobody listened on a moment ago, all different.

    They are not of those that systems give to whoever connects, and each of the processes that run
    tests side by side has a share of its own: another could be given the same port, before the
    first has listened on it. One process gives them in turn."""
    found: list[int] = []
    for port in islice(_ports_in_turn, len(_PORTS)):
        with socket.socket() as each, contextlib.suppress(OSError):
            each.bind((_HOST, port))
            found.append(port)
        if len(found) == count:
            return found
    raise BrokerFailedError(f"there are no {count} free ports")


def _shuffled_ports(worker: str) -> Iterator[int]:
    """Those of one worker of pytest-xdist ("gw2"); of the first one without it."""
    number = int(worker.removeprefix("gw") or 0)
    share = _PORTS[number % _PORT_SHARES :: _PORT_SHARES]
    return cycle(_CHANCE.sample(share, len(share)))


_ports_in_turn: Final = _shuffled_ports(os.environ.get("PYTEST_XDIST_WORKER", ""))


def new_cluster_id() -> str:
    """An id that no cluster has."""
    return base64.urlsafe_b64encode(os.urandom(16)).decode().rstrip("=")


class KafkaBroker:
    """A broker of one release in one folder. ``start``, ``stop`` and ``kill`` may alternate; the
    data and, after the first start, the port stay the same.

    Share groups and streams groups are switched off, as the mock's are. ``features`` are finalized
    at these levels when the folder is formatted, the others as the release has it. The log has
    warnings; ``log_levels`` say otherwise, by logger. ``plugins`` are jars of classes that
    ``configs`` name."""

    host: Final = _HOST

    def __init__(
        self,
        version: str,
        folder: Path,
        configs: Mapping[str, str] | None = None,
        *,
        cluster_id: str | None = None,
        features: Mapping[str, int] | None = None,
        log_levels: Mapping[str, str] | None = None,
        plugins: Sequence[Path] = (),
    ) -> None:
        self.version = version
        self.folder = folder
        self.port = 0
        self._configs = dict(configs or {})
        self._log_levels = [
            f"-Dorg.slf4j.simpleLogger.log.{name}={level}"
            for name, level in (log_levels or {}).items()
        ]
        self._features = {
            **{
                name: 0 for name, since in _SWITCHED_OFF.items() if ReleaseLine.of(version) >= since
            },
            **(features or {}),
        }
        self._cluster_id = cluster_id or new_cluster_id()
        self._plugins = tuple(plugins)
        self._archive: ClassArchive | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._watcher: subprocess.Popen[bytes] | None = None

    @property
    def log_path(self) -> Path:
        return self.folder / "broker.log"

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Format the folder when it is new, run the broker and wait for the ports of all its
        listeners: it opens one after the other.

        Raises ``BrokerFailedError`` with the end of its log, ``KafkaUnavailableError`` when Kafka
        cannot be had here.
        """
        assert not self.is_running, "the broker is running"
        self.folder.mkdir(parents=True, exist_ok=True)
        for attempt in range(_START_ATTEMPTS):
            self._write_settings()
            self._format()
            self._run()
            try:
                self._await_ports()
            except BrokerFailedError:
                taken = "Address already in use" in self.log_tail()
                self.kill()
                # Another process may take a free port between our look and the broker's bind.
                is_ours = "listeners" not in self._configs
                if not (taken and is_ours) or attempt + 1 == _START_ATTEMPTS:
                    raise
                self.port = 0
            else:
                return

    def stop(self) -> None:
        """End the broker in good order (it writes a clean shutdown); kill it if that takes too
        long."""
        self._end(gently=True)

    def kill(self) -> None:
        """End the broker as a crash would."""
        self._end(gently=False)

    def discard(self) -> None:
        """End the broker in the shortest way: nobody needs its data any more."""
        self._end(gently=self._archive is not None and self._archive.is_missing)

    def log_tail(self) -> str:
        """The last lines of the broker's own log."""
        if not self.log_path.exists():
            return ""
        lines = self.log_path.read_text(errors="replace").splitlines()
        return "\n".join(lines[-_LOG_TAIL_LINES:])

    def _java(self, *arguments: str) -> list[str]:
        classpath = os.pathsep.join([f"{kafka_libs(self.version)}/*", *map(str, self._plugins)])
        return [find_java(), *_JVM, *_LOGGING, "-cp", classpath, *arguments]

    def _write_settings(self) -> None:
        broker_port, controller_port = free_ports(2)
        self.port = self.port or broker_port
        settings = {
            **_BASE,
            "controller.quorum.voters": f"1@{_HOST}:{controller_port}",
            "listeners": f"PLAINTEXT://{_HOST}:{self.port},CONTROLLER://{_HOST}:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://{_HOST}:{self.port}",
            "log.dirs": str(self.folder / "data"),
            **self._configs,
        }
        text = "".join(f"{key}={value}\n" for key, value in settings.items())
        (self.folder / "server.properties").write_text(text)

    def _format(self) -> None:
        data = self.folder / "data"
        if (data / _META).exists():
            return
        shutil.rmtree(data, ignore_errors=True)
        roles = self._configs.get("process.roles")
        kind = self.version, roles, tuple(sorted(self._features.items()))
        if kind not in _formatted:
            self._run_format()
            files = [each for each in data.rglob("*") if each.is_file() and each.name != _META]
            _formatted[kind] = {str(each.relative_to(data)): each.read_bytes() for each in files}
            return
        for name, content in _formatted[kind].items():
            (data / name).parent.mkdir(parents=True, exist_ok=True)
            (data / name).write_bytes(content)
        meta = {
            "version": "1",
            "cluster.id": self._cluster_id,
            "node.id": self._configs.get("node.id", _BASE["node.id"]),
            "directory.id": new_cluster_id(),
        }
        data.mkdir(exist_ok=True)
        (data / _META).write_text("".join(f"{key}={value}\n" for key, value in meta.items()))

    def _run_format(self) -> None:
        settings = str(self.folder / "server.properties")
        # With "=", because an id may begin with a hyphen and would then be read as an option.
        identity = f"--cluster-id={self._cluster_id}"
        features = [f"--feature={name}={level}" for name, level in self._features.items()]
        command = self._java("kafka.tools.StorageTool", "format", identity, "-c", settings)
        command += features
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise BrokerFailedError(f"Kafka {self.version} format: {done.stdout}{done.stderr}")

    def _run(self) -> None:
        if not self._plugins:  # an archive is of the jars of all brokers
            self._archive = ClassArchive(kafka_libs(self.version), self.folder)
        options = [] if self._archive is None else self._archive.options()
        settings = str(self.folder / "server.properties")
        options = [*self._log_levels, *options]
        command = self._java(*options, "kafka.Kafka", settings)
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                start_new_session=True,  # Ctrl-C ends the tests first, then we end the broker
            )
        self._watcher = subprocess.Popen(
            ["/bin/sh", "-c", 'read _; kill -9 "$1"', "watcher", str(self._process.pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def _await_ports(self) -> None:
        closed = self._ports()
        deadline = time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < deadline:
            if not self.is_running:
                raise BrokerFailedError(f"Kafka {self.version} ended:\n{self.log_tail()}")
            with contextlib.suppress(OSError):
                while closed:
                    with socket.create_connection((_HOST, closed[0]), 1):
                        closed.pop(0)
                return
            time.sleep(0.05)
        message = f"Kafka {self.version} does not listen on {closed}:\n{self.log_tail()}"
        raise BrokerFailedError(message)

    def _ports(self) -> list[int]:
        """Of the listeners that the settings name."""
        lines = (self.folder / "server.properties").read_text().splitlines()
        [listeners] = [line for line in lines if line.startswith("listeners=")]
        return [int(each.rpartition(":")[2]) for each in listeners.split(",")]

    def _end(self, *, gently: bool) -> None:
        watcher, process = self._watcher, self._process
        self._watcher = self._process = None
        if watcher is not None:
            watcher.kill()  # first, so that it can never meet a recycled process id
            watcher.wait()
            if watcher.stdin is not None:
                watcher.stdin.close()
        if process is None:
            return
        if gently and process.poll() is None:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_STOP_TIMEOUT_S)
                if self._archive is not None:
                    self._archive.keep()  # of one that served, and was not cut off
        if process.poll() is None:
            process.kill()
        process.wait()
