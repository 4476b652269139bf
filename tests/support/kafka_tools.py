"""Kafka's own command line tools, as one call.

``run_tool("org.apache.kafka.tools.TopicCommand", "--list", "--bootstrap-server", address)`` runs
a Java class from the published jars to its end and returns what it printed; ``tool_command``
gives the argument list for a caller that wants to hold the process itself (a console consumer,
for instance).
"""

from __future__ import annotations

import subprocess
from typing import Final

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


class ToolFailedError(AssertionError):
    """A tool ended with an error; the message has its output."""


def tool_command(main_class: str, *arguments: str) -> list[str]:
    """The command that runs a tool's main class. Raises ``KafkaUnavailableError``."""
    jvm = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    libs = kafka_libs(ALL_VERSIONS[0]) if main_class == CONFIGS else tools_libs()
    return [find_java(), *jvm, "-cp", f"{libs}/*", main_class, *arguments]


def run_tool(
    main_class: str, *arguments: str, stdin: str | None = None, timeout_s: float = 40
) -> str:
    """Run a tool to its end and return its standard output.

    ``stdin`` is fed to it. Raises ``ToolFailedError`` with all its output when the exit code is
    not 0 or it does not end in ``timeout_s`` seconds, ``KafkaUnavailableError`` when it cannot be
    started here.
    """
    try:
        done = subprocess.run(
            tool_command(main_class, *arguments),
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout_s,
        )
    except subprocess.TimeoutExpired as err:
        raise ToolFailedError(f"{main_class} did not end in {timeout_s} s: {err.stdout!r}") from err
    if done.returncode != 0:
        raise ToolFailedError(
            f"{main_class} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
        )
    return done.stdout
