"""Kafka's own command line tools, as one call.

``run_tool("org.apache.kafka.tools.TopicCommand", "--list", "--bootstrap-server", address)`` runs
a Java class from the published jars to its end and returns what it printed; ``tool_command``
gives the argument list for a caller that wants to hold the process itself (a console consumer,
for instance).
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.support.class_archive import ClassArchive
from tests.support.kafka_jars import ALL_VERSIONS, find_java, kafka_libs, tools_libs

__all__ = [
    "CONFIGS",
    "CONSOLE_CONSUMER",
    "CONSOLE_PRODUCER",
    "CONSUMER_GROUPS",
    "DELETE_RECORDS",
    "FEATURES",
    "GET_OFFSETS",
    "GROUPS",
    "LEADER_ELECTION",
    "MESSAGE_COPIER",
    "REASSIGN_PARTITIONS",
    "TOPICS",
    "TRANSACTIONS",
    "VERIFIABLE_CONSUMER",
    "VERIFIABLE_PRODUCER",
    "ToolFailedError",
    "run_tool",
    "tool_command",
]

CONSOLE_CONSUMER: Final = "org.apache.kafka.tools.consumer.ConsoleConsumer"
CONSOLE_PRODUCER: Final = "org.apache.kafka.tools.ConsoleProducer"
CONFIGS: Final = "kafka.admin.ConfigCommand"
"""Part of the broker's jars, not of the tools', until 4.4."""
CONSUMER_GROUPS: Final = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
DELETE_RECORDS: Final = "org.apache.kafka.tools.DeleteRecordsCommand"
FEATURES: Final = "org.apache.kafka.tools.FeatureCommand"
GET_OFFSETS: Final = "org.apache.kafka.tools.GetOffsetShell"
GROUPS: Final = "org.apache.kafka.tools.GroupsCommand"
LEADER_ELECTION: Final = "org.apache.kafka.tools.LeaderElectionCommand"
MESSAGE_COPIER: Final = "org.apache.kafka.tools.TransactionalMessageCopier"
REASSIGN_PARTITIONS: Final = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
TOPICS: Final = "org.apache.kafka.tools.TopicCommand"
TRANSACTIONS: Final = "org.apache.kafka.tools.TransactionsCommand"
VERIFIABLE_CONSUMER: Final = "org.apache.kafka.tools.VerifiableConsumer"
VERIFIABLE_PRODUCER: Final = "org.apache.kafka.tools.VerifiableProducer"

_JVM: Final = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


class ToolFailedError(AssertionError):
    """A tool ended with an error; the message has its output."""


def tool_command(main_class: str, *arguments: str) -> list[str]:
    """The command that runs a tool's main class. Raises ``KafkaUnavailableError``."""
    archive = _archive(main_class, Path())
    jvm = [] if archive is None or archive.is_missing else archive.options()
    return _command(main_class, *arguments, jvm=jvm)


def _command(main_class: str, *arguments: str, jvm: Sequence[str] = ()) -> list[str]:
    return [find_java(), *_JVM, *jvm, "-cp", f"{_libs(main_class)}/*", main_class, *arguments]


def _libs(main_class: str) -> Path:
    return kafka_libs(ALL_VERSIONS[0]) if main_class == CONFIGS else tools_libs()


def _archive(main_class: str, folder: Path) -> ClassArchive | None:
    """The tools' own; the one beside a broker's jars is the broker's."""
    return None if main_class == CONFIGS else ClassArchive(tools_libs(), folder)


def run_tool(
    main_class: str, *arguments: str, stdin: str | None = None, timeout_s: float = 40
) -> str:
    """Run a tool to its end and return its standard output.

    ``stdin`` is fed to it. Raises ``ToolFailedError`` with all its output when the exit code is
    not 0 or it does not end in ``timeout_s`` seconds, ``KafkaUnavailableError`` when it cannot be
    started here.
    """
    with tempfile.TemporaryDirectory() as folder:
        archive = _archive(main_class, Path(folder))
        jvm = [] if archive is None else archive.options()
        try:
            done = subprocess.run(
                _command(main_class, *arguments, jvm=jvm),
                input=stdin,
                capture_output=True,
                text=True,
                check=False,
                timeout=timeout_s,
            )
        except subprocess.TimeoutExpired as err:
            said = f"{main_class} did not end in {timeout_s} s: {err.stdout!r}"
            raise ToolFailedError(said) from err
        if archive is not None:
            archive.keep()
    if done.returncode != 0:
        raise ToolFailedError(
            f"{main_class} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        )
    return done.stdout
