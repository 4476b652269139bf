"""``kip848 groups`` and ``topics`` beside Kafka's own tools, on one broker: the same tables."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
from collections.abc import Callable
from typing import Final

import pytest
from aiokafka import AIOKafkaConsumer

from kip848_client import Admin, Consumer, Producer
from kip848_client.cli import main
from tests.support.kafka_tools import CONFIGS, CONSUMER_GROUPS, TOPICS, tool_command
from tests.support.pytest_kafka import skip_without_kafka
from tests.support.real_kafka import RealKafka

pytestmark = [pytest.mark.real_kafka, pytest.mark.asyncio, pytest.mark.timeout(240)]

PATIENCE_S: Final = 60.0
POLL_MS: Final = 200
DESCRIBED: Final = (
    ("--offsets",),
    ("--offsets", "--verbose"),
    ("--members",),
    ("--members", "--verbose"),
    ("--state",),
    ("--state", "--verbose"),
)
LISTED: Final[tuple[tuple[str, ...], ...]] = (
    (),
    ("--state",),
    ("--type",),
    ("--state", "--type"),
    ("--state", "Empty"),
)
RESETS: Final = (
    ("--to-earliest",),
    ("--to-latest",),
    ("--to-current", "--export"),
    ("--shift-by", "-2"),
    ("--to-offset", "99"),
    ("--by-duration", "PT1H"),
)


def theirs(bootstrap: str, action: str, *options: str) -> str:
    """What Kafka's tool prints."""
    command = tool_command(
        CONSUMER_GROUPS, "--bootstrap-server", bootstrap, f"--{action}", *options
    )
    return printed(command)


def printed(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60).stdout


class Ours:
    """What ``kip848 groups`` prints; its exit code."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.exit_status = 0

    def __call__(self, bootstrap: str, action: str, *options: str) -> str:
        self._capsys.readouterr()
        self.exit_status = main(["groups", action, "--bootstrap-server", bootstrap, *options])
        return self._capsys.readouterr().out


def in_any_order(text: str) -> list[str]:
    """The lines of a table: Java's come in the order of its hash maps."""
    return sorted(text.split("\n"))


Member = Consumer[bytes | None, bytes | None]


async def settled(admin: Admin, group: str, members: list[Member]) -> None:
    """Return when each member has its target and the coordinator has heard of it."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            for each in members:  # asking takes the time that lies between two looks
                await each.getmany(timeout_ms=POLL_MS)
            found = (await admin.describe_groups([group]))[group]
            if found.state == "Stable" and all(each.assignment for each in found.members):
                return


@pytest.mark.two_releases
async def test_our_tables_are_those_of_kafkas_tool(
    real_kafka: RealKafka, unique: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    bootstrap = real_kafka.bootstrap
    topic, other = unique("orders"), unique("a-topic-with-a-name-that-is-longer-than-a-column")
    modern, classic, empty = unique("modern"), unique("classic"), unique("empty")
    real_kafka.create_topic(topic, 4)
    real_kafka.create_topic(other, 2)
    async with contextlib.AsyncExitStack() as stack:
        admin = await stack.enter_async_context(Admin(bootstrap_servers=bootstrap))
        async with Producer(bootstrap_servers=bootstrap) as producer:
            for number in range(12):
                await producer.send(topic, b"x", partition=number % 4)
                await producer.send(other, b"x", partition=number % 2)
        async with consumer(bootstrap, empty, other) as emptied:
            await emptied.getmany(timeout_ms=5_000)
            await emptied.commit()
        members = [
            consumer(bootstrap, modern, topic, other),
            consumer(bootstrap, modern, topic, group_instance_id=unique("instance")),
        ]
        for each in members:
            await stack.enter_async_context(each)
        old = AIOKafkaConsumer(
            topic, bootstrap_servers=bootstrap, group_id=classic, auto_offset_reset="earliest"
        )
        await old.start()
        stack.push_async_callback(old.stop)
        await old.getmany(timeout_ms=5_000)
        await old.commit()
        await settled(admin, modern, members)
        first = members[0]
        await first.commit({tp: await first.position(tp) for tp in first.assignment()})
        groups = (modern, classic, empty)
        await asyncio.to_thread(compare, bootstrap, groups, Ours(capsys))


def consumer(
    bootstrap: str, group: str, *topics: str, group_instance_id: str | None = None
) -> Member:
    return Consumer(
        *topics,
        bootstrap_servers=bootstrap,
        group_id=group,
        group_instance_id=group_instance_id,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )


def compare(bootstrap: str, groups: tuple[str, str, str], ours: Ours) -> None:
    with skip_without_kafka():
        modern, _, empty = groups
        described = [("--group", group, *options) for group in groups for options in DESCRIBED]
        for options in described:
            found = ours(bootstrap, "describe", *options)
            assert ours.exit_status == 0
            assert in_any_order(found) == in_any_order(theirs(bootstrap, "describe", *options))
        for listed in LISTED:
            found = ours(bootstrap, "list", *listed)
            assert in_any_order(found) == in_any_order(theirs(bootstrap, "list", *listed))
        for reset in RESETS:
            chosen = ("--group", empty, "--all-topics", "--dry-run", *reset)
            found = ours(bootstrap, "reset-offsets", *chosen)
            assert in_any_order(found) == in_any_order(theirs(bootstrap, "reset-offsets", *chosen))
        live = ("--group", modern, "--all-topics", "--to-latest", "--dry-run")
        found = ours(bootstrap, "reset-offsets", *live)
        assert found == theirs(bootstrap, "reset-offsets", *live)
        assert ours.exit_status == 1
        said = "Group nowhere not found."
        assert said in ours(bootstrap, "describe", "--group", "nowhere")
        assert said in theirs(bootstrap, "describe", "--group", "nowhere")


async def test_our_topics_and_settings_are_those_of_kafkas_tools(
    real_kafka: RealKafka, unique: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    at = ("--bootstrap-server", real_kafka.bootstrap)
    topic, group = unique("orders"), unique("group")
    key = "consumer.session.timeout.ms"
    real_kafka.create_topic(topic, 2)

    def ours(*words: str) -> str:
        capsys.readouterr()
        assert main([*words[:2], *at, *words[2:]]) == 0
        return capsys.readouterr().out

    def compare() -> None:
        ours("topics", "alter", "--topic", topic, "--add-config", "retention.ms=86400000")
        ours("groups", "config", "--group", group, "--add-config", f"{key}=50000")
        with skip_without_kafka():
            command = tool_command(TOPICS, *at, "--describe", "--topic", topic)
            told = printed(command)
            assert ours("topics", "describe", "--topic", topic) == told
            command = tool_command(CONFIGS, *at, "--describe", "--all", "--group", group)
            told = printed(command)
            found = ours("groups", "config", "--all", "--group", group)
            assert in_any_order(found) == in_any_order(told)

    await asyncio.to_thread(compare)
