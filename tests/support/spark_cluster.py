"""Spark's standalone cluster: a master and workers, each in processes of its own on this machine,
and a Python for executors that does not have this package."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import venv
from collections import deque
from pathlib import Path
from types import TracebackType
from typing import Final, Self

__all__ = ["ConnectServer", "StandaloneCluster", "python_without_package"]

_START_S: Final = 120.0
_URL: Final = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED: Final = re.compile(r"Successfully registered with master")
_CONNECT: Final = re.compile(r"Spark Connect server started at: (\S+)")
_PACKAGES: Final = ("kip848_client", "pyspark_kip848", "mock_coordinator")


def python_without_package(folder: Path) -> Path:
    """An environment with all that the package needs, but without the package; its Python."""
    deps = folder / "deps"
    deps.mkdir(parents=True)
    for found in _site_packages(Path(sys.prefix)).iterdir():
        if found.suffix != ".pth" and not found.name.startswith(_PACKAGES):
            (deps / found.name).symlink_to(found)
    home = folder / "environment"
    venv.create(home, symlinks=True)
    (_site_packages(home) / "deps.pth").write_text(f"{deps}\n")
    return home / "bin" / "python"


def _site_packages(home: Path) -> Path:
    [found] = home.glob("lib/python3*/site-packages")
    return found


class _Daemon:
    """A process of Spark's, with all that it starts, and what it says."""

    def __init__(self, name: str, *arguments: str, folder: Path) -> None:
        """``name`` within Spark's package ``deploy``."""
        import pyspark

        home = str(Path(pyspark.__file__).parent)
        folder.mkdir(parents=True, exist_ok=True)
        self.said: deque[str] = deque(maxlen=500)
        self._news = threading.Condition()
        self._process = subprocess.Popen(
            [f"{home}/bin/spark-class", f"org.apache.spark.deploy.{name}", *arguments],
            cwd=folder,
            env=_environment()
            | {"SPARK_HOME": home, "SPARK_LOCAL_IP": "127.0.0.1"}
            | {"PYSPARK_PYTHON": sys.executable},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,  # so that its executors die with it
        )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            with self._news:
                self.said.append(line)
                self._news.notify_all()
        with self._news:
            self.said.append("it has ended")
            self._news.notify_all()

    def wait_for(self, pattern: re.Pattern[str]) -> re.Match[str]:
        """The first line of its log that has it."""

        def found() -> re.Match[str] | None:
            matches = (pattern.search(line) for line in self.said)
            return next((each for each in matches if each is not None), None)

        with self._news:
            self._news.wait_for(
                lambda: found() is not None or self._process.poll() is not None, _START_S
            )
            match = found()
            assert match is not None, "".join(self.said)
            return match

    def kill(self) -> None:
        """As a machine does that loses its power."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._listener.join(10)
        assert self._process.stderr is not None
        self._process.stderr.close()


def _environment() -> dict[str, str]:
    """Without a path to the package that executors would find."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


class StandaloneCluster:
    """A master and some workers of one core each."""

    def __init__(self, folder: Path, workers: int = 2) -> None:
        self._folder = folder
        self._wanted = workers
        self._master: _Daemon | None = None
        self._workers: list[_Daemon] = []
        self.url = ""
        """For ``--master``."""

    def start(self) -> None:
        """Until all workers are known to the master. ``stop`` also after an error."""
        free = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        self._master = _Daemon("master.Master", *free, folder=self._folder / "master")
        self.url = self._master.wait_for(_URL)[1]
        for number in range(self._wanted):
            self._workers.append(self._worker(number))
        for worker in self._workers:
            worker.wait_for(_REGISTERED)

    def _worker(self, number: int) -> _Daemon:
        size = ("--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "1g")
        folder = self._folder / f"worker-{number}"
        return _Daemon("worker.Worker", *size, self.url, folder=folder)

    def kill_worker(self, number: int) -> None:
        """The worker and its executors, at once."""
        self._workers[number].kill()

    def start_worker(self, number: int) -> None:
        """Another one in its place."""
        self._workers[number] = self._worker(number)

    def stop(self) -> None:
        """Kill all."""
        for each in (*self._workers, self._master):
            if each is not None:
                each.kill()


class ConnectServer:
    """A server of Spark Connect with two cores. Leaving the block kills it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._daemon: _Daemon | None = None
        self.url = ""
        """For ``SparkSession.builder.remote``."""

    def __enter__(self) -> Self:
        settings = {
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": "0",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
        }
        said = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
        server = ("--class", "org.apache.spark.sql.connect.service.SparkConnectServer")
        master = ("--master", "local[2]")
        self._daemon = _Daemon(
            "SparkSubmit", *server, *master, *said, "spark-internal", folder=self._folder
        )
        try:
            self.url = f"sc://{self._daemon.wait_for(_CONNECT)[1]}"
        except BaseException:
            self._daemon.kill()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        err: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._daemon is not None
        self._daemon.kill()
