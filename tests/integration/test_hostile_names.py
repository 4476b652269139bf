"""Names that strangers chose, in all that ``kip848`` prints: nothing of them reaches the terminal
that is not seen, and a line stays a line."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

from kip848_client.cli import main
from kip848_client.core.types import LEAVE_EPOCH
from kip848_client.core.visible import visible
from kip848_client.core.wire import api_named
from kip848_client.history.core import line_of
from mock_coordinator.threaded import BrokerThread
from tests.support.histories import event
from tests.support.terminal import Terminal
from tests.support.wire_connection import WireConnection

pytestmark = pytest.mark.mock_broker(
    {"orders": 2}, config={"group.consumer.assignment.interval.ms": "0"}
)

HOSTILE: Final = (
    "a\x1b]0;title\x07\x1b[2J\rX\nproduction-billing",
    "tab\tvertical\x0bform\x0cdelete\x7fbell\x07back\x08",
    "next\x85line\u2028paragraph\u2029control\x9b31m",
    "\u202egnp.exe\u2066x\u2069\u200f",
    "a\u200bb\u200d\ufeff\u00a0\u3164",
    "name\nError: forged\n\n",
    "注文\N{COMBINING ACUTE ACCENT}\U000e0041",
    "x" * 200 + "\n" + "y" * 49,
)


@contextmanager
def hostile_group(broker: BrokerThread, name: str) -> Generator[None]:
    """A group, a client, a member and an instance of this name, with an offset in another group."""
    heartbeat = api_named("ConsumerGroupHeartbeat").request
    host, _, port = broker.bootstrap.rpartition(":")
    with WireConnection(host, int(port), client_id=name[:100]) as connection:
        join = heartbeat(
            group_id=name,
            member_id=f"member {name}",
            instance_id=f"instance {name}",
            member_epoch=0,
            rebalance_timeout_ms=1000,
            subscribed_topic_names=("orders",),
            topic_partitions=(),
        )
        joined = connection.request(join, 1)
        assert joined.error_code == 0, joined
        yield
        leave = heartbeat(group_id=name, member_id=f"member {name}", member_epoch=LEAVE_EPOCH)
        connection.request(leave, 1)


def commands(name: str, folder: Path) -> Iterator[list[str]]:
    """Every command that prints names, with those that fail."""
    group = ["--group", name]
    yield ["groups", "list"]
    yield ["groups", "list", "--state", "--type"]
    for what in ([], ["--offsets"], ["--members"], ["--state"]):
        for more in ([], ["--verbose"]):
            yield ["groups", "describe", *group, *what, *more]
    yield ["groups", "describe", "--all-groups", "--members"]
    yield ["groups", "describe", "--group", f"no {name}"]
    yield ["groups", "watch", name, "--count", "1"]
    yield ["groups", "watch", f"no {name}", "--count", "1"]
    yield ["groups", "delete", *group]
    yield ["groups", "delete", "--group", f"no {name}"]
    yield ["groups", "delete-offsets", *group, "--topic", "orders:0"]
    yield ["groups", "delete-offsets", *group, "--topic", f"{name}:0"]
    yield ["groups", "reset-offsets", *group, "--topic", "orders", "--to-latest"]
    for more in ([], ["--execute"], ["--export"]):
        to = ["--topic", "orders", "--to-latest", "--create", *more]
        yield ["groups", "reset-offsets", "--group", f"new {name}", *to]
        yield ["groups", "reset-offsets", "--group", f"new {name}", "--group", f"b{name}", *to]
    yield ["groups", "reset-offsets", *group, "--from-file", str(folder / name.replace("/", ""))]
    yield ["groups", "config", *group, "--add-config", "consumer.session.timeout.ms=50000"]
    yield ["groups", "config", *group]
    yield ["groups", "config", *group, "--delete-config", name]
    yield ["topics", "create", "--topic", name]
    yield ["topics", "describe", "--topic", name]
    yield ["topics", "describe", "--topic", "orders"]
    yield ["topics", "delete", "--topic", name]
    yield ["topics", "alter", "--topic", name, "--partitions", "7"]
    yield ["topics", "alter", "--topic", "orders", "--add-config", f"retention.ms={name}"]
    yield ["topics", "list"]


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_nothing_of_a_name_reaches_the_terminal(
    name: str,
    mock_broker: BrokerThread,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    shown: list[str] = []
    with hostile_group(mock_broker, name):
        for command in commands(name, tmp_path):
            main([*command, "--bootstrap-server", mock_broker.bootstrap])
            out, errors = capsys.readouterr()
            kept = "\n\t" if command[:2] == ["topics", "describe"] else "\n"  # as Kafka prints it
            for text in (out, errors):
                assert not_seen(text, kept=kept) == "", (command, text)
                shown += text.split("\n")
            if command == ["groups", "list"]:
                assert out == f"{visible(name)}\n"
    assert not [line for line in shown if line.strip() in ("production-billing", "Error: forged")]
    assert any(visible(name) in line for line in shown)


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_data_have_the_name_as_it_is(
    name: str, mock_broker: BrokerThread, capsys: pytest.CaptureFixture[str]
) -> None:
    with hostile_group(mock_broker, name):
        for words in (["list"], ["describe", "--all-groups", "--members"]):
            main(["groups", *words, "--json", "--bootstrap-server", mock_broker.bootstrap])
            out = capsys.readouterr().out
            assert [each["group"] for each in json.loads(out)] == [name]
            assert out.isascii()


def test_a_plan_of_such_groups_is_read_again(
    mock_broker: BrokerThread, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    groups = [option for name in HOSTILE for option in ("--group", name)]
    reset = ["groups", "reset-offsets", *groups, "--bootstrap-server", mock_broker.bootstrap]
    assert main([*reset, "--topic", "orders", "--to-latest", "--create", "--export"]) == 0
    file = tmp_path / "plan.csv"
    file.write_text(capsys.readouterr().out.rstrip("\n"))
    assert main([*reset, "--from-file", str(file), "--execute", "--create"]) == 0
    capsys.readouterr()
    assert main(["groups", "list", "--bootstrap-server", mock_broker.bootstrap]) == 0
    assert sorted(capsys.readouterr().out.split("\n")[:-1]) == sorted(map(visible, HOSTILE))


def test_a_live_view_shows_them_escaped(
    mock_broker: BrokerThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    bootstrap = ["--bootstrap-server", mock_broker.bootstrap]
    for name in HOSTILE[:-2]:
        with hostile_group(mock_broker, name), Terminal(80, 50) as terminal:
            with monkeypatch.context() as patched:
                patched.setattr(sys, "stdout", terminal.out)
                assert main(["groups", "watch", name, "--count", "1", *bootstrap]) == 0
            assert "\x1b]" not in terminal.raw
            rows = "".join(terminal.rows()).replace(" ", "")
            assert visible(name).replace(" ", "") in rows


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_command_lines_and_files_are_quoted_so(
    name: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    events = tmp_path / "events"
    said = {"group_id": name, "client_id": name, "instance_id": name, "cause": name}
    events.write_bytes(line_of(event("epoch", 1, name, member_epoch=1, **said)))
    with events.open("ab") as file:
        file.write(json.dumps({"schema": name}).encode() + b"\n")
    report = ["report", str(events), "--output", str(tmp_path / "page.html")]
    for words in ([name], ["groups", "list", name], ["groups", "--validate-regex", name], report):
        with suppress(SystemExit):  # of a command line that is wrong
            main(words)
        out, errors = capsys.readouterr()
        assert not_seen(out + errors) == "", words
    assert out.startswith(f"group {visible(name)}\n")


def not_seen(text: str, *, kept: str = "\n") -> str:
    """What a terminal would not show as it is, or do something with."""
    return "".join(
        each
        for each in text
        if each not in kept and unicodedata.category(each)[0] in "CZ" and each != " "
    )
