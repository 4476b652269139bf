"""``kip848 groups`` and ``kip848 topics`` on our broker, over TCP: each command, with and without
``--json``, and what it ends with when something is refused."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from kip848_client import TopicPartition
from kip848_client.cli import main
from kip848_client.core.types import LEAVE_EPOCH
from kip848_client.core.wire import api_named
from kip848_client.error_codes import ErrorCode
from mock_coordinator import Fault, Match
from mock_coordinator.core.faults import Drop, Moment, Refuse
from mock_coordinator.threaded import BrokerThread, ClusterThread
from tests.support.wire_connection import WireConnection

pytestmark = pytest.mark.mock_broker(
    {"orders": 2, "other": 1},
    config={"group.consumer.assignment.interval.ms": "0", "min.insync.replicas": "1"},
)

PAGE: Final = Path(__file__).parents[2] / "docs" / "how-to" / "administer.md"
DONE: Final = 0
FAILED: Final = 1
WRONG: Final = 2


class Shell:
    """Runs ``kip848`` and keeps what it printed."""

    def __init__(self, broker: BrokerThread, capsys: pytest.CaptureFixture[str]) -> None:
        self.broker = broker
        self._capsys = capsys
        self.errors = ""

    def __call__(self, *words: str, ends_with: int = DONE) -> str:
        command, action, *options = words
        self._capsys.readouterr()
        arguments = [command, action, "--bootstrap-server", self.broker.bootstrap, *options]
        ended = main(arguments)
        out, self.errors = self._capsys.readouterr()
        assert ended == ends_with, (out, self.errors)
        return out

    def json(self, *words: str, ends_with: int = DONE) -> Any:
        return json.loads(self(*words, "--json", ends_with=ends_with))

    def commit(self, group: str, *lines: str, folder: Path) -> None:
        """Give a group these offsets, as ``topic,partition,offset``."""
        file = folder / "offsets.csv"
        file.write_text("".join(f"{line}\n" for line in lines))
        options = ("--group", group, "--from-file", str(file), "--execute", "--create")
        self("groups", "reset-offsets", *options)


@pytest.fixture
def shell(mock_broker: BrokerThread, capsys: pytest.CaptureFixture[str]) -> Shell:
    return Shell(mock_broker, capsys)


@contextmanager
def member(broker: BrokerThread, group: str) -> Generator[None]:
    """A member of a group that has all of ``orders``."""
    heartbeat = api_named("ConsumerGroupHeartbeat").request
    host, _, port = broker.bootstrap.rpartition(":")
    with WireConnection(host, int(port), client_id="app") as connection:
        join = heartbeat(
            group_id=group,
            member_id="member-1",
            member_epoch=0,
            rebalance_timeout_ms=1000,
            subscribed_topic_names=("orders",),
            topic_partitions=(),
        )
        joined = connection.request(join, 1)
        assert joined.error_code == 0, joined
        yield
        leave = heartbeat(group_id=group, member_id="member-1", member_epoch=LEAVE_EPOCH)
        connection.request(leave, 1)


def offset_of(broker: BrokerThread, group: str, partition: TopicPartition) -> int | None:
    snapshot = broker.snapshot(group)
    if snapshot is None:
        return None
    return snapshot.offsets[partition.topic][partition.partition].offset


def test_groups_are_listed_by_state_and_type(shell: Shell, tmp_path: Path) -> None:
    assert shell("groups", "list") == ""
    shell.commit("simple", "orders,0,0", folder=tmp_path)
    with member(shell.broker, "modern"):
        assert shell("groups", "list") == "modern\nsimple\n"
        text = shell("groups", "list", "--state", "--type")
        assert text.splitlines()[1].split() == ["modern", "Consumer", "Stable"]
        assert text.splitlines()[2].split() == ["simple", "Classic", "Empty"]
        assert shell("groups", "list", "--state", "empty").split()[2:] == ["simple", "Empty"]
        assert shell("groups", "list", "--type", "consumer").split()[2:] == ["modern", "Consumer"]
        assert [each["group"] for each in shell.json("groups", "list")] == ["modern", "simple"]
    shell("groups", "list", "--type", "nonsense", ends_with=WRONG)
    assert "Valid types are: Consumer, Classic" in shell.errors


def test_a_group_is_described(shell: Shell, tmp_path: Path) -> None:
    shell.broker.produce("orders", b"1", b"2", b"3", partition=1)
    shell.commit("modern", "orders,1,1", folder=tmp_path)
    shell("groups", "delete", "--group", "modern")
    with member(shell.broker, "modern"):
        group = ("--group", "modern")
        text = shell("groups", "describe", *group)
        assert text.startswith("\nGROUP ")
        assert shell("groups", "describe", *group, "--offsets") == text
        rows = [line.split() for line in text.splitlines()[2:]]
        host = ["member-1", "/127.0.0.1", "app"]
        assert rows == [
            ["modern", "orders", "0", "-", "0", "-", *host],
            ["modern", "orders", "1", "-", "3", "-", *host],
        ]
        text = shell("groups", "describe", *group, "--members", "--verbose")
        assert "CURRENT-EPOCH" in text
        assert " orders:0,1 " in text
        assert shell("groups", "describe", *group, "--state").split()[-3:] == [
            "uniform",
            "Stable",
            "1",
        ]
        (found,) = shell.json("groups", "describe", *group, "--members")
        (only,) = found["members"]
        assert (found["group"], found["type"], found["state"]) == ("modern", "Consumer", "Stable")
        assert only["target_assignment"] == {"orders": [0, 1]}
        (found,) = shell.json("groups", "describe", *group)
        assert [each["log_end_offset"] for each in found["offsets"]] == [0, 3]
        (found,) = shell.json("groups", "describe", *group, "--state")
        assert found["group_epoch"] == found["target_assignment_epoch"]
    shell("groups", "describe", *group, "--state")
    assert "Consumer group 'modern' has no active members." in shell.errors


def test_all_groups_are_described_a_section_each(shell: Shell, tmp_path: Path) -> None:
    shell.commit("a", "orders,0,0", folder=tmp_path)
    shell.commit("b", "orders,0,0", folder=tmp_path)
    text = shell("groups", "describe", "--all-groups", "--state")
    assert [part.split()[6] for part in text.split("\n\n")] == ["a", "b"]
    assert shell("groups", "describe", "--group", "b", "--group", "a", "--state") == text


def test_a_group_that_is_not_there_is_an_error_beside_the_others(
    shell: Shell, tmp_path: Path
) -> None:
    shell.commit("a", "orders,0,0", folder=tmp_path)
    both = ("--group", "nowhere", "--group", "a")
    text = shell("groups", "describe", *both, ends_with=FAILED)
    assert "\nError: Group nowhere not found.\n" in text
    assert "\na  " in text
    found = shell.json("groups", "describe", *both, ends_with=FAILED)
    assert [each["group"] for each in found] == ["a"]
    shell("groups", "describe", ends_with=WRONG)


def test_offsets_are_reset_when_that_is_said(shell: Shell, tmp_path: Path) -> None:
    shell.broker.produce("orders", b"1", b"2", b"3", partition=0)
    first = TopicPartition("orders", 0)
    shell.commit("g", "orders,0,1", "orders,1,0", folder=tmp_path)
    group = ("groups", "reset-offsets", "--group", "g")
    text = shell(*group, "--all-topics", "--to-latest")
    assert text.startswith("\nGROUP ")
    assert [line.split() for line in text.splitlines()[2:]] == [
        ["g", "orders", "0", "3"],
        ["g", "orders", "1", "0"],
    ]
    assert "nothing is changed without --execute" in shell.errors
    assert offset_of(shell.broker, "g", first) == 1
    shell(*group, "--topic", "orders:0", "--shift-by", "1", "--execute")
    assert shell.errors == ""
    assert offset_of(shell.broker, "g", first) == 2
    exported = shell(*group, "--topic", "orders", "--to-current", "--export", "--dry-run")
    assert exported == "orders,0,2\norders,1,0\n\n"
    (row,) = shell.json(*group, "--topic", "orders:0", "--to-offset", "99", "--dry-run")
    assert row == {
        "group": "g",
        "topic": "orders",
        "partition": 0,
        "current_offset": 2,
        "new_offset": 3,
        "difference": 1,
    }
    for option in (("--by-duration", "PT1H"), ("--to-datetime", "1970-01-01T00:00:00.000")):
        (row,) = shell.json(*group, "--topic", "orders:0", *option, "--dry-run")
        assert row["new_offset"] == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--to-latest",), "One of the reset scopes should be defined"),
        (("--all-topics", "--to-offset", "-1"), "must not be negative"),
        (("--all-topics", "--by-duration", "1 hour"), "ISO 8601"),
        (("--all-topics", "--by-duration", f"P{'9' * 400}D"), "longer than 2**63"),
        (("--all-topics", "--to-datetime", "now"), "not a date"),
        (("--topic", "orders:x", "--to-latest"), "TOPIC:0,1"),
        (("--from-file", "/nowhere.csv"), "nowhere.csv"),
        (("--topic", "other", "--shift-by", "1"), "no current committed offset"),
    ],
)
def test_a_reset_that_cannot_be_meant_is_refused(
    shell: Shell, tmp_path: Path, options: tuple[str, ...], said: str
) -> None:
    shell.commit("g", "orders,0,0", folder=tmp_path)
    shell("groups", "reset-offsets", "--group", "g", *options, ends_with=WRONG)
    assert said in shell.errors


def test_what_is_in_use_is_neither_reset_nor_deleted(shell: Shell) -> None:
    with member(shell.broker, "g"):
        options = ("--group", "g", "--topic", "orders", "--to-latest", "--execute")
        text = shell("groups", "reset-offsets", *options, ends_with=FAILED)
        assert "'g' is inactive, but the current state is Stable." in text
        text = shell("groups", "delete", "--group", "g", ends_with=FAILED)
        assert "* Group 'g' could not be deleted due to: The group is not empty." in text
        chosen = ("--group", "g", "--topic", "orders:0")
        text = shell("groups", "delete-offsets", *chosen, ends_with=FAILED)
        assert "actively subscribed" in text
        assert "--create" in shell(
            *("groups", "reset-offsets", "--group", "new", "--topic", "orders", "--to-latest"),
            ends_with=FAILED,
        )


def test_groups_and_offsets_are_deleted(shell: Shell, tmp_path: Path) -> None:
    shell.commit("g", "orders,0,0", "orders,1,0", folder=tmp_path)
    text = shell("groups", "delete-offsets", "--group", "g", "--topic", "orders:1")
    assert text.startswith("Request succeeded for deleting offsets from group g.\n\nTOPIC ")
    assert text.split()[-3:] == ["orders", "1", "Successful"]
    (row,) = shell.json("groups", "delete-offsets", "--group", "g", "--topic", "orders:0")
    assert row["status"] == "Successful"
    shell.commit("g", "orders,0,0", folder=tmp_path)
    text = shell("groups", "delete", "--group", "g")
    assert text == "Deletion of requested consumer groups ('g') was successful.\n"
    found = shell.json("groups", "delete", "--group", "g", ends_with=FAILED)
    assert found["deleted"] == []
    assert found["failed"][0]["group"] == "g"


def test_settings_of_a_group_are_shown_and_changed(shell: Shell) -> None:
    key = "consumer.session.timeout.ms"
    config = ("groups", "config", "--group", "g")
    assert shell(*config) == "Dynamic configs for group g are:\n"
    assert f"  {key}=45000 sensitive=false" in shell(*config, "--all")
    text = shell(*config, "--add-config", f"{key}=50000")
    assert text == "Completed updating config for group g.\n"
    assert f"  {key}=50000 sensitive=false synonyms={{DYNAMIC_GROUP_CONFIG:{key}=50000" in shell(
        *config
    )
    found = shell.json(*config, "--delete-config", key)["g"]
    back = next(each for each in found if each["name"] == key)
    assert (back["value"], back["synonyms"][0]["source"]) == ("45000", "DEFAULT_CONFIG")
    text = shell(*config, "--add-config", f"{key}=1", ends_with=FAILED)
    assert text.startswith("\nError: ")
    shell(*config, "--add-config", key, ends_with=WRONG)


def test_a_group_is_watched(shell: Shell) -> None:
    looks = ("--count", "2", "--interval", "0.01")
    text = shell("groups", "watch", "g", *looks, ends_with=FAILED)
    assert text == "Error: Group g not found.\n" * 2
    with member(shell.broker, "g"):
        text = shell("groups", "watch", "g", *looks)
        assert text.count("TARGET-ASSIGNMENT-EPOCH") == 2
        assert "member-1" in text
        first, _ = map(json.loads, shell("groups", "watch", "g", *looks, "--json").splitlines())
        assert (first["group"], first["moving"]) == ("g", [])


def test_a_broker_that_is_away_for_a_while_does_not_end_a_watch(
    shell: Shell, tmp_path: Path
) -> None:
    shell.broker.inject(Fault(Drop(), Match(api="OffsetFetch")))
    patient = tmp_path / "client.properties"
    patient.write_text("request.timeout.ms=30000")
    within = ("--timeout", "200", "--command-config", str(patient))
    looks = ("--count", "2", "--interval", "0.01", *within, "--json")
    with member(shell.broker, "g"):
        first, second = map(json.loads, shell("groups", "watch", "g", *looks).splitlines())
        assert "did not answer within the time allowed" in first["errors"][0]
        assert second["state"] == "Stable"


def test_topics_are_managed(shell: Shell) -> None:
    create = ("topics", "create", "--topic", "new", "--partitions", "2")
    assert shell(*create, "--config", "retention.ms=1000") == "Created topic new.\n"
    assert shell(*create, "--if-not-exists") == ""
    text = shell(*create, ends_with=FAILED)
    assert text == "\nError: Topic 'new' already exists.\n"
    assert shell("topics", "list", "--exclude-internal").split() == ["new", "orders", "other"]
    text = shell("topics", "describe", "--topic", "new")
    head, first, _ = text.splitlines()
    assert "PartitionCount: 2\tReplicationFactor: 1\t" in head
    assert head.endswith("\tConfigs: min.insync.replicas=1,retention.ms=1000")
    said = "\tTopic: new\tPartition: 0\tLeader: 1\tReplicas: 1\tIsr: 1\tElr: \tLastKnownElr: "
    assert first == said
    options = ("--partitions", "3", "--add-config", "retention.ms=2000")
    assert shell("topics", "alter", "--topic", "new", *options) == ""
    (found,) = shell.json("topics", "describe", "--topic", "new")
    assert found["configs"]["retention.ms"] == "2000"
    assert len(found["partitions"]) == 3
    shell("topics", "alter", "--topic", "new", ends_with=WRONG)
    assert shell("topics", "delete", "--topic", "new") == ""
    assert "new" not in [each["topic"] for each in shell.json("topics", "list")]
    both = ("--topic", "new", "--topic", "orders")
    text = shell("topics", "describe", *both, ends_with=FAILED)
    assert text.startswith("Topic: orders\t")
    assert text.endswith("\nError: topic new: This server does not host this topic-partition.\n")
    found = shell.json("topics", "describe", *both, ends_with=FAILED)
    assert [each["topic"] for each in found] == ["orders"]
    assert shell.errors.startswith("Error: topic new: ")


def test_what_fails_is_named(shell: Shell) -> None:
    said = "\nError: nowhere: This server does not host this topic-partition.\n"
    topic = ("--topic", "nowhere")
    assert shell("topics", "delete", *topic, ends_with=FAILED) == said
    assert shell("topics", "alter", *topic, "--partitions", "5", ends_with=FAILED) == said
    chosen = ("groups", "delete-offsets", "--group", "g", *topic)
    assert shell(*chosen, ends_with=FAILED) == said
    reset = ("groups", "reset-offsets", "--group", "g", "--create", "--to-latest")
    text = shell(*reset, "--topic", "orders:7", ends_with=FAILED)
    assert text.startswith("\nError: orders-7: This server does not host")
    found = shell.json("topics", "delete", *topic, "--topic", "other", ends_with=FAILED)
    assert found["deleted"] == ["other"]
    assert [each["topic"] for each in found["failed"]] == ["nowhere"]


def test_what_fails_of_one_group_hides_no_other(shell: Shell, tmp_path: Path) -> None:
    for group in ("a", "b"):
        shell.commit(group, "orders,0,0", folder=tmp_path)
    shell.broker.inject(
        Fault(Refuse(ErrorCode.GROUP_AUTHORIZATION_FAILED), Match(api="OffsetFetch"))
    )
    found = shell.json("groups", "describe", "--all-groups", ends_with=FAILED)
    assert [each["group"] for each in found] == ["b"]
    assert shell.errors == "Error: a: Group authorization failed.\n"


def test_a_broker_that_says_nothing_hides_no_group_of_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with ClusterThread({"orders": 1}, brokers=3) as cluster:
        like_one: Any = cluster
        shell = Shell(like_one, capsys)
        groups = [f"g{number}" for number in range(12)]
        for group in groups:
            shell.commit(group, "orders,0,0", folder=tmp_path)
        coordinators = {
            each["group"]: each["coordinator"]["id"]
            for each in shell.json("groups", "describe", "--all-groups", "--state")
        }
        mute = Fault(Drop(Moment.REQUEST), Match(api="ListGroups", node_id=2), times=None)
        cluster.inject(mute)
        found = shell("groups", "list", "--timeout", "600", ends_with=FAILED)
        told, _, error = found.partition("\nError: ")
        assert told.split() == sorted(each for each in groups if coordinators[each] != 2)
        assert error.startswith("broker 2: no answer within the time allowed")


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("orders,0,x", "line 1 is 'orders,0,x': expected topic,partition,offset"),
        ("orders,0,1\norders,0,2", "line 2 gives orders-0 another offset"),
        (f"orders,0,{'1' * 200_000}", "not comma-separated values"),
    ],
)
def test_a_plan_that_cannot_be_meant_is_refused(
    shell: Shell, tmp_path: Path, lines: str, said: str
) -> None:
    file = tmp_path / "plan.csv"
    file.write_text(lines)
    options = ("--group", "g", "--from-file", str(file))
    shell("groups", "reset-offsets", *options, ends_with=WRONG)
    assert said in shell.errors


def test_a_setting_that_there_is_not_is_not_given_back(shell: Shell) -> None:
    gone = ("--delete-config", "retention.mss")
    text = shell("topics", "alter", "--topic", "orders", *gone, ends_with=FAILED)
    assert text == "\nError: Invalid config(s): retention.mss\n"
    text = shell("groups", "config", "--group", "g", *gone, ends_with=FAILED)
    assert text == "\nError: Invalid config(s): retention.mss\n"
    shell("topics", "alter", "--topic", "orders", "--delete-config", "retention.ms")


def test_a_reader_that_has_enough_is_no_error_to_shout_about(shell: Shell) -> None:
    reads, writes = os.pipe()
    os.close(reads)
    command = [sys.executable, "-m", "kip848_client", "topics", "list"]
    with os.fdopen(writes, "wb") as nobody:
        done = subprocess.run(
            [*command, "--bootstrap-server", shell.broker.bootstrap],
            stdout=nobody,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            timeout=60,
        )
    assert (done.returncode, done.stderr) == (FAILED, "")


def test_a_broker_that_is_not_there_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["groups", "list", "--bootstrap-server", "127.0.0.1:1"]) == FAILED
    assert "127.0.0.1:1" in capsys.readouterr().out


def test_the_command_config_is_heeded(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("client.id=somebody\n")
    shell("groups", "list", "--command-config", str(file))
    file.write_text("security.protocol=NONE\n")
    shell("groups", "list", "--command-config", str(file), ends_with=WRONG)
    assert "security_protocol" in shell.errors
    shell("groups", "list", "--timeout", "0", ends_with=WRONG)


def test_patterns_are_validated_without_a_broker(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["groups", "--validate-regex", "ab.*"]) == DONE
    assert capsys.readouterr().out == "The regular expression `ab.*` is valid.\n"
    assert main(["groups", "--validate-regex", "a(b"]) == FAILED
    assert capsys.readouterr().out.startswith("The regular expression `a(b` is invalid: ")
    assert main(["groups"]) == WRONG


def blocks(language: str) -> list[str]:
    """The code of the how-to page."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)


def test_the_commands_of_the_page_run(shell: Shell, tmp_path: Path) -> None:
    shell.commit("billing", "orders,0,0", "orders,1,0", folder=tmp_path)
    (text,) = blocks("sh")
    for line in filter(None, text.splitlines()):
        program, *words = shlex.split(line.replace("localhost:9092", shell.broker.bootstrap))
        assert program == "kip848"
        assert main(words) == DONE, line


def test_the_program_of_the_page_runs(shell: Shell, tmp_path: Path) -> None:
    shell.commit("billing", "orders,0,0", folder=tmp_path)
    (text,) = blocks("python")
    program = "async def page():\n" + textwrap.indent(text, "    ")
    names: dict[str, Any] = {}
    exec(program.replace("localhost:9092", shell.broker.bootstrap), names)
    asyncio.run(names["page"]())
    assert shell("groups", "list") == ""
