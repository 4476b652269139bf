"""Kafka Connect's own classes, asked many questions in one Java process.

``ConnectOracle`` (beside) is compiled into a folder against the published jars. ``ask`` gives it
lines and returns one answer for each; the functions below write such lines and read the answers.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from kip848_client.core.connect import ConnectorTaskId, Items, WorkerAssignment, WorkerMetadata
from tests.support.kafka_jars import (
    TOOLS_VERSION,
    KafkaUnavailableError,
    chosen_jars,
    find_java,
)

__all__ = [
    "ConnectOracle",
    "assignment_line",
    "assignment_words",
    "metadata_line",
    "metadata_words",
    "name_word",
    "names_of",
    "round_words",
    "tasks_of",
]

_CLASS: Final = "org.apache.kafka.connect.runtime.distributed.ConnectOracle"
_SOURCE: Final = Path(__file__).parent / "ConnectOracle.java"
_OURS: Final = ("connect-runtime", "connect-api", "connect-json", "kafka-clients")
_LOG: Final = ("org.slf4j:slf4j-api:1.7.36", "org.slf4j:slf4j-simple:1.7.36")
_QUIET: Final = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
_TIMEOUT_S: Final = 120


class ConnectOracle:
    """Compiled into ``folder``. Raises ``KafkaUnavailableError`` without a JDK or the jars."""

    def __init__(self, folder: Path) -> None:
        compiler = shutil.which("javac")
        if compiler is None:
            raise KafkaUnavailableError("a JDK is missing: no `javac` in PATH")
        artifacts = [f"org.apache.kafka:{each}:{TOOLS_VERSION}" for each in _OURS]
        jars = chosen_jars(f"connect-runtime-{TOOLS_VERSION}", [*artifacts, *_LOG])
        self._path = ":".join([str(folder), *map(str, jars)])
        command = [compiler, "-nowarn", "-d", str(folder), "-cp", self._path, str(_SOURCE)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def ask(self, lines: Iterable[str]) -> list[str]:
        """One answer for each line."""
        asked = list(lines)
        command = [find_java(), "-Xmx512m", "-XX:+UseSerialGC", _QUIET, "-cp", self._path, _CLASS]
        text = "".join(f"{line}\n" for line in asked)
        done = subprocess.run(
            command, input=text, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S
        )
        assert done.returncode == 0, done.stderr
        answers = done.stdout.splitlines()
        assert len(answers) == len(asked), done.stdout[-2000:] + done.stderr
        return answers


# -- words -----------------------------------------------------------------------------------------


def name_word(name: str) -> str:
    """A name as one word."""
    return "x" + name.encode().hex()


def _names(names: Sequence[str]) -> str:
    return ",".join(map(name_word, names)) or "-"


def _tasks(tasks: Sequence[ConnectorTaskId]) -> str:
    return ",".join(f"{name_word(name)}:{task}" for name, task in tasks) or "-"


def _text(word: str) -> str:
    return bytes.fromhex(word[1:]).decode()


def names_of(word: str) -> tuple[str, ...]:
    """The names in an answer."""
    return () if word == "-" else tuple(map(_text, word.split(",")))


def tasks_of(word: str) -> tuple[ConnectorTaskId, ...]:
    """The tasks in an answer."""
    if word == "-":
        return ()
    pairs = (each.split(":") for each in word.split(","))
    return tuple(ConnectorTaskId(_text(name), int(task)) for name, task in pairs)


def assignment_words(said: WorkerAssignment) -> list[str]:
    """An assignment, as answers to ``read-assignment`` have it; null items are none."""
    assigned, revoked = said.assigned or Items(), said.revoked or Items()
    return [
        str(said.error),
        name_word(said.leader),
        name_word(said.leader_url),
        str(said.config_offset),
        _names(assigned.connectors),
        _tasks(assigned.tasks),
        _names(revoked.connectors),
        _tasks(revoked.tasks),
        str(said.delay_ms),
    ]


def assignment_line(said: WorkerAssignment) -> str:
    """Asks for the bytes of an assignment."""
    return " ".join(["assignment", str(said.version), *assignment_words(said)])


def metadata_words(said: WorkerMetadata) -> list[str]:
    """Metadata, as answers to ``read-metadata`` have it."""
    found = [name_word(said.url), str(said.config_offset)]
    return found if said.allocation is None else [*found, *assignment_words(said.allocation)]


def metadata_line(said: WorkerMetadata) -> str:
    """Asks for the bytes of metadata."""
    words = ["metadata", str(said.version), name_word(said.url), str(said.config_offset)]
    if said.allocation is not None:
        words.append(assignment_line(said.allocation))
    return " ".join(words)


def round_words(connectors: Mapping[str, int], reported: Mapping[str, Items]) -> list[str]:
    """A configuration and what workers report, as ``round`` and ``time`` take them."""
    words = [",".join(f"{name_word(name)}:{count}" for name, count in connectors.items()) or "-"]
    for worker, items in reported.items():
        words += [name_word(worker), _names(items.connectors), _tasks(items.tasks)]
    return words
