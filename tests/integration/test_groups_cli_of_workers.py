"""``kip848 groups`` on groups of Connect workers, of both group protocols, and ``--type``."""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

from kip848_client.core.connect import WorkerAssignment, WorkerMetadata, items_of
from kip848_client.error_codes import ErrorCode
from mock_coordinator.threaded import BrokerThread
from tests.integration.test_groups_cli import WRONG, Shell, member, shell
from tests.support.plain_message import message
from tests.support.wire_connection import WireConnection

__all__ = ["shell"]

pytestmark = pytest.mark.mock_broker(
    {"orders": 2}, config={"group.initial.rebalance.delay.ms": "0"}
)

TASKS = {"connector": "a", "generation": 3, "runs_connector": True, "tasks": [0]}
LATER = {"connector": "a", "generation": 3, "tasks": [1]}
SAID = WorkerAssignment("w-1", "http://one", 4, delay_ms=300_000).encode()
METADATA = WorkerMetadata("http://one", 4).encode()


@contextmanager
def connected(broker: BrokerThread) -> Generator[WireConnection]:
    host, _, port = broker.bootstrap.rpartition(":")
    with WireConnection(host, int(port), client_id="connect-1") as connection:
        yield connection


@contextmanager
def workers(broker: BrokerThread) -> Generator[None]:
    """The worker w-1 runs a and a-0, and a-1 waits for one that has left."""
    offer = {
        "name": "incremental-cooperative",
        "minimum_version": 1,
        "maximum_version": 2,
        "version": 2,
        "metadata": METADATA,
    }

    with connected(broker) as connection:

        def beat(epoch: int, owned: list[Any], **more: Any) -> int:
            answer = connection.request(
                message(
                    "ConnectGroupHeartbeat",
                    group_id="w",
                    member_id="w-1",
                    member_epoch=epoch,
                    rebalance_timeout_ms=10_000 if epoch == 0 else -1,
                    owned=owned,
                    **more,
                ),
                0,
            )
            assert answer.error_code == 0, answer
            return int(answer.member_epoch)

        epoch = beat(0, [], client_assignors=[offer])
        who = {"group_id": "w", "member_id": "w-1", "member_epoch": epoch}
        given = connection.request(message("ConnectGroupPrepareAssignment", **who), 0)
        mine = {"member_id": "w-1", "items": [TASKS], "version": 2, "metadata": SAID}
        install = message(
            "ConnectGroupInstallAssignment",
            **who,
            group_epoch=given.group_epoch,
            members=[mine],
            deferred=[LATER],
        )
        assert connection.request(install, 0).error_code == 0
        beat(beat(epoch, []), [TASKS])
        yield
        beat(-1, [])


@contextmanager
def classic_worker(broker: BrokerThread) -> Generator[None]:
    """The only worker of a classic group, as Kafka Connect's own join one."""
    with connected(broker) as connection:
        join = {
            "group_id": "old",
            "session_timeout_ms": 10_000,
            "rebalance_timeout_ms": 10_000,
            "protocol_type": "connect",
            "protocols": [{"name": "sessioned", "metadata": METADATA}],
        }
        first = connection.request(message("JoinGroup", **join), 9)
        assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
        joined = connection.request(message("JoinGroup", **join, member_id=first.member_id), 9)
        told = WorkerAssignment(first.member_id, "http://one", 4, assigned=items_of({"a": 2}))
        sync = message(
            "SyncGroup",
            group_id="old",
            generation_id=joined.generation_id,
            member_id=first.member_id,
            protocol_type="connect",
            protocol_name="sessioned",
            assignments=[{"member_id": first.member_id, "assignment": told.encode()}],
        )
        assert connection.request(sync, 5).error_code == 0
        yield


def test_groups_of_workers_are_listed_where_they_are_asked_for(shell: Shell) -> None:
    with workers(shell.broker), classic_worker(shell.broker), member(shell.broker, "modern"):
        assert shell("groups", "list") == "modern\n"
        assert shell.json("groups", "list", "--type", "classic") == []
        found = shell.json("groups", "list", "--type", "connect")
        assert [(each["group"], each["type"]) for each in found] == [
            ("old", "Classic"),
            ("w", "Connect"),
        ]
        found = shell.json("groups", "list", "--type", "Connect,consumer")
        assert [each["group"] for each in found] == ["modern", "old", "w"]
        assert "Valid types are: Consumer, Classic, Connect" in _refused(shell, "list")
        assert "Valid types are: Consumer, Classic, Connect" in _refused(shell, "describe")


def _refused(shell: Shell, action: str) -> str:
    group = ("--group", "g") if action == "describe" else ()
    shell("groups", action, *group, "--type", "share", ends_with=WRONG)
    return shell.errors


def test_a_connect_group_is_described(shell: Shell) -> None:
    describe = ("groups", "describe", "--group", "w")
    with workers(shell.broker):
        lines = [line.split() for line in shell(*describe).splitlines() if line]
        assert [line[:6] for line in lines] == [
            ["GROUP", "CONNECTOR", "TASK", "GENERATION", "STATE", "WORKER-ID"],
            ["w", "a", "-", "-", "Running", "w-1"],
            ["w", "a", "0", "3", "Running", "w-1"],
            ["w", "a", "1", "3", "Deferred", "-"],
        ]
        assert lines[1][6:] == ["http://one", "/127.0.0.1"]
        items = shell.json(*describe)[0]["items"]
        assert [(each["task"], each["state"]) for each in items] == [
            (None, "Running"),
            (0, "Running"),
            (1, "Deferred"),
        ]
        members = shell(*describe, "--members", "--verbose", "--type")
        head, row = (line.split() for line in members.splitlines() if line)
        shown = dict(zip(head, row, strict=True))
        assert shown["TYPE"] == "Connect"
        assert (shown["CURRENT-ITEMS"], shown["TARGET-ITEMS"]) == ("a,a-0", "a,a-0")
        assert (shown["CURRENT-EPOCH"], shown["TARGET-EPOCH"], shown["STATE"]) == (
            "2",
            "2",
            "Stable",
        )
        assert (shown["ERROR"], shown["VERSION"], shown["METADATA"]) == ("0", "2", SAID.hex())
        (data,) = shell.json(*describe, "--members")
        assert data["members"][0]["url"] == "http://one"
        assert data["members"][0]["config_offset"] == 4
        assert data["members"][0]["assignor_said_with_target"]["metadata"] == SAID.hex()
        state = shell(*describe, "--state", "--verbose")
        head, row = (line.replace("  (", " (").split() for line in state.splitlines() if line)
        assert {"http://one", "300000", "incremental-cooperative", "Stable"} <= set(row)
        (data,) = shell.json(*describe, "--state")
        assert (data["type"], data["protocol_type"], data["delay_ms"]) == (
            "Connect",
            "connect",
            300_000,
        )
        assert data["deferred"] == [{"connector": "a", "task": 1, "generation": 3}]
        assert data["leader"] == "w-1"


def test_a_connect_group_is_watched(shell: Shell) -> None:
    looks = ("--count", "2", "--interval", "0.01")
    with workers(shell.broker):
        text = shell("groups", "watch", "w", *looks)
        assert text.count("TARGET-ITEMS") == 2
        assert text.count("Deferred") == 2
        first, _ = map(json.loads, shell("groups", "watch", "w", *looks, "--json").splitlines())
        assert (first["group"], first["type"], first["moving"]) == ("w", "Connect", [])
        assert [each["state"] for each in first["items"]] == ["Running", "Running", "Deferred"]


def test_a_classic_group_of_workers_is_described(shell: Shell) -> None:
    describe = ("groups", "describe", "--group", "old")
    with classic_worker(shell.broker):
        lines = [line.split() for line in shell(*describe, "--type").splitlines() if line]
        assert [line[:7] for line in lines[1:]] == [
            ["old", "Classic", "(connect)", "a", "-", "-", "Running"],
            ["old", "Classic", "(connect)", "a", "0", "-", "Running"],
            ["old", "Classic", "(connect)", "a", "1", "-", "Running"],
        ]
        assert "http://one" in shell(*describe, "--members", "--verbose")
        assert shell.json(*describe, "--state")[0]["leader_url"] == "http://one"


def test_the_type_is_shown_and_chooses_groups(shell: Shell) -> None:
    with workers(shell.broker), member(shell.broker, "modern"):
        for section in ("--offsets", "--members", "--state"):
            text = shell("groups", "describe", "--group", "modern", section, "--type")
            head, row = (line.split() for line in text.splitlines()[1:3])
            assert (head[1], row[1]) == ("TYPE", "Consumer")
            plain = shell("groups", "describe", "--group", "modern", section)
            assert "TYPE" not in plain
        found = shell.json("groups", "describe", "--all-groups", "--state")
        assert [each["group"] for each in found] == ["modern"]
        found = shell.json("groups", "describe", "--all-groups", "--state", "--type", "connect")
        assert [each["group"] for each in found] == ["w"]
        both = ("--group", "w", "--group", "modern", "--state")
        found = shell.json("groups", "describe", *both, "--type", "consumer")
        assert [each["group"] for each in found] == ["modern"]
        assert (found[0]["type"], found[0]["protocol_type"]) == ("Consumer", "consumer")
