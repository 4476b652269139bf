"""A Java worker of Kafka Connect as a child process, with the connectors to and from files.

Like the brokers, it does not outlive the tests: a watcher reads from a pipe that only we hold.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
import urllib.request
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any, Final, Self

from tests.support.kafka_broker import free_ports
from tests.support.kafka_jars import connect_libs, find_java

__all__ = ["JavaConnectWorker"]

_MAIN: Final = "org.apache.kafka.connect.cli.ConnectDistributed"
_JVM: Final = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_STRINGS: Final = "org.apache.kafka.connect.storage.StringConverter"
_START_TIMEOUT_S: Final = 60


class JavaConnectWorker:
    """A running worker; made by ``JavaConnectWorker.start``."""

    def __init__(self, folder: Path, port: int, process: subprocess.Popen[bytes]) -> None:
        self._folder = folder
        self._process = process
        self.id = f"127.0.0.1:{port}"
        """As statuses name it."""

    @classmethod
    @contextlib.contextmanager
    def start(cls, bootstrap: str, group_id: str, folder: Path, **settings: str) -> Generator[Self]:
        """Run a worker for the length of a ``with`` block. ``settings`` have _ for dots. Raises
        ``KafkaUnavailableError``, and ``AssertionError`` with its log if it does not answer."""
        [port] = free_ports(1)
        folder.mkdir()
        topics = {
            f"{what}.storage.{key}": value
            for what in ("config", "offset", "status")
            for key, value in (("topic", f"{group_id}-{what}"), ("replication.factor", "1"))
        }
        properties = {
            "bootstrap.servers": bootstrap,
            "group.id": group_id,
            "key.converter": _STRINGS,
            "value.converter": _STRINGS,
            "listeners": f"http://127.0.0.1:{port}",
            "rest.advertised.host.name": "127.0.0.1",
            "offset.storage.partitions": "1",
            "status.storage.partitions": "1",
            **topics,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
        file = folder / "worker.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        command = [find_java(), *_JVM, "-cp", f"{connect_libs()}/*", _MAIN, str(file)]
        with (folder / "worker.log").open("wb") as log:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder
            )
        watcher = subprocess.Popen(
            ["/bin/sh", "-c", 'read _; kill -9 "$1"', "watcher", str(process.pid)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        worker = cls(folder, port, process)
        try:
            worker._await_rest()
            yield worker
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(20)
            process.kill()
            process.wait()
            watcher.kill()
            watcher.communicate()  # which closes the pipe

    def log_tail(self) -> str:
        """The end of what it told."""
        return "\n".join((self._folder / "worker.log").read_text().splitlines()[-40:])

    def ask(self, method: str, path: str, body: Mapping[str, object] | None = None) -> Any:
        """A call of its REST interface. Raises ``OSError`` for anything but success."""
        request = urllib.request.Request(
            f"http://{self.id}{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read() or b"null")

    def running(self) -> set[tuple[str, int]]:
        """What runs here, by the statuses: (connector, task), -1 for the connector."""
        found: set[tuple[str, int]] = set()
        for name, said in self.ask("GET", "/connectors?expand=status").items():
            status = said["status"]
            parts = [(-1, status["connector"])] + [(each["id"], each) for each in status["tasks"]]
            found |= {
                (name, task)
                for task, part in parts
                if part["state"] == "RUNNING" and part["worker_id"] == self.id
            }
        return found

    def _await_rest(self) -> None:
        deadline = time.monotonic() + _START_TIMEOUT_S
        while time.monotonic() < deadline and self._process.poll() is None:
            with contextlib.suppress(OSError):
                self.ask("GET", "/connectors")
                return
            time.sleep(0.1)
        raise AssertionError(f"the Java worker does not answer:\n{self.log_tail()}")
