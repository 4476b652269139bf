"""A broker's plug-in that writes what clients push to a file, and a reader of that file.

::

    with payload_writer(folder) as plugin:
        configs = plugin.configs
        with RealKafka.start("4.4.0", configs, plugins=[plugin.jar]) as kafka:
            ...
            for push in plugin.pushes():
                print(push.client_id, push.names)

Brokers offer GetTelemetrySubscriptions and PushTelemetry only with such a plug-in (KIP-714). It is
a class of Java (beside), which is compiled against the broker's jars.
"""

from __future__ import annotations

import shutil
import struct
import subprocess
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from tests.support.kafka_jars import KafkaUnavailableError, kafka_jar

__all__ = ["PayloadWriter", "Push"]

_CLASS: Final = "PayloadWriter"
_SOURCE: Final = Path(__file__).parent / f"{_CLASS}.java"
_LENGTH: Final = struct.Struct(">i")


@dataclass(frozen=True, slots=True)
class Push:
    """One PushTelemetry, as the plug-in got it: decompressed."""

    at_ms: int
    instance_id: str
    client_id: str
    terminating: bool
    content_type: str
    payload: bytes

    @property
    def data(self) -> Any:
        """The payload, read."""
        return MetricsData.FromString(self.payload)

    @property
    def metrics(self) -> list[Any]:
        """All metrics in it."""
        return [
            metric
            for resource in self.data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        ]

    @property
    def names(self) -> set[str]:
        """The names of the metrics."""
        return {metric.name for metric in self.metrics}

    @property
    def labels(self) -> dict[str, str]:
        """What is said of the client as a whole."""
        (resource,) = {each.resource.SerializeToString() for each in self.data.resource_metrics}
        found = self.data.resource_metrics[0].resource
        assert found.SerializeToString() == resource
        return {each.key: each.value.string_value for each in found.attributes}


class PayloadWriter:
    """The plug-in, compiled into ``folder``. Raises ``KafkaUnavailableError`` without a JDK."""

    def __init__(self, version: str, folder: Path) -> None:
        self.jar = folder / "plugin.jar"
        self._path = folder / "pushes"
        self._compile(version, folder)

    @property
    def configs(self) -> Mapping[str, str]:
        """What the broker is set to."""
        return {"metric.reporters": _CLASS, "payload.writer.path": str(self._path)}

    def pushes(self) -> list[Push]:
        """What was pushed so far."""
        if not self._path.exists():
            return []
        fields = list(_fields(self._path.read_bytes()))
        whole = len(fields) - len(fields) % 6
        return [
            Push(
                int(at_ms),
                instance_id.decode(),
                client_id.decode(),
                terminating == b"true",
                content_type.decode(),
                payload,
            )
            for at_ms, instance_id, client_id, terminating, content_type, payload in zip(
                *(fields[n:whole:6] for n in range(6)), strict=True
            )
        ]

    def _compile(self, version: str, folder: Path) -> None:
        compiler = shutil.which("javac")
        if compiler is None:
            raise KafkaUnavailableError("a JDK is missing: no `javac` in PATH")
        classes = folder / "classes"
        command = [compiler, "-nowarn", "-Xlint:-removal", "-d", str(classes)]
        command += ["-cp", str(kafka_jar(version)), str(_SOURCE)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        with zipfile.ZipFile(self.jar, "w") as jar:
            for each in classes.rglob("*.class"):
                jar.write(each, each.relative_to(classes))


def _fields(raw: bytes) -> Iterator[bytes]:
    """What is there whole: the broker may be writing."""
    at = 0
    while at + _LENGTH.size <= len(raw):
        (length,) = _LENGTH.unpack_from(raw, at)
        at += _LENGTH.size
        if at + length > len(raw):
            return
        yield raw[at : at + length]
        at += length
