"""``kip848 mock`` as a user runs it: a process, one line, a signal."""

from __future__ import annotations

import re
import signal
import socket
import struct
import subprocess
import sys
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from kip848_client.cli import main
from kip848_client.core.wire import api_named, read_response, write_request
from kip848_client.core.wire.messages.metadata import MetadataRequest, MetadataResponse

MODULES = ("kip848_client", "mock_coordinator")
PATIENCE_S = 20


def command(module: str, *arguments: str) -> list[str]:
    verb = ["mock"] if module == "kip848_client" else []
    return [sys.executable, "-m", module, *verb, *arguments]


@contextmanager
def running(module: str, *arguments: str) -> Generator[subprocess.Popen[str], None, None]:
    process = subprocess.Popen(
        command(module, *arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE_S)


def address_of(process: subprocess.Popen[str]) -> tuple[str, int]:
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.fullmatch(r"listening on ([\w.]+):(\d+)\n", line)
    assert found is not None, line
    return found[1], int(found[2])


def metadata_from(address: tuple[str, int]) -> MetadataResponse:
    with socket.create_connection(address, PATIENCE_S) as connection:
        connection.sendall(write_request(MetadataRequest(topics=None), 12, 1, None))
        data = b""
        while len(data) < 4 or len(data) < 4 + struct.unpack_from(">i", data)[0]:
            data += connection.recv(65536)
        _, response = read_response(data[4:], api_named("Metadata"), 12)
        assert isinstance(response, MetadataResponse)
        return response


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_listens_says_so_and_stops_on_a_signal(module: str, number: signal.Signals) -> None:
    with running(module, "--topic", "a:3", "--topic", "b:1") as process:
        address = address_of(process)
        found = metadata_from(address)
        assert {t.name: len(t.partitions) for t in found.topics} == {"a": 3, "b": 1}
        assert (found.brokers[0].host, found.brokers[0].port) == address
        process.send_signal(number)
        rest, _ = process.communicate(timeout=PATIENCE_S)
        assert rest == "", "it prints one line only"
        assert process.returncode == 0


def test_metrics_are_shown_on_a_port_of_their_own() -> None:
    with running("kip848_client", "--metrics-port", "0") as process:
        address_of(process)
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.fullmatch(r"metrics on (http://127.0.0.1:\d+/metrics)\n", line)
        assert found is not None, line
        with urllib.request.urlopen(found[1], timeout=PATIENCE_S) as answer:
            text = answer.read().decode()
        assert "kafka_server_group_coordinator_metrics_event_queue_size 0\n" in text
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0


def test_a_port_for_metrics_that_is_taken_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            command("kip848_client", "--metrics-port", port),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    assert done.returncode != 0
    assert f"--metrics-port {port}" in done.stderr
    assert "Traceback" not in done.stderr


def test_settings_and_profile_are_taken_and_idle_ones_are_named() -> None:
    settings = (
        *("--config", "group.consumer.assignment.interval.ms=0"),
        *("--config", "node.id=7", "--config", "log.dirs=/tmp/x"),
        *("--profile", "4.3", "--host", "127.0.0.1", "--port", "0"),
    )
    with running("kip848_client", *settings) as process:
        assert metadata_from(address_of(process)).brokers[0].node_id == 7
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=PATIENCE_S)
        assert "log.dirs is a Kafka setting without effect in this broker" in errors
        assert "interval" not in errors


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--config", "group.consumer.asignment.interval.ms=0"), "did you mean group.consumer.ass"),
        (("--config", "num.partitions=many"), "Not a number of type INT"),
        (("--config", "num.partitions"), "expected KEY=VALUE"),
        (("--topic", "a"), "expected NAME:PARTITIONS"),
        (("--topic", "a:0"), "Number of partitions was set to an invalid non-positive value."),
        (("--topic", "a:99999999999"), "expected NAME:PARTITIONS"),
        (("--topic", "a:1", "--topic", "a:2"), "a is given twice"),
        (("--data-dir", ""), "the name of the folder is empty"),
        (("--listener", "IN:PLAINTEXT:99999"), "listener IN: expected a port from 0 to 65535"),
        (("--listener", f"IN:PLAINTEXT:{'9' * 5_000}"), "expected NAME:PROTOCOL:PORT"),
        (("--super-user", "root"), "expected User:NAME"),
        (("--tls-key", "/nowhere"), "there is none"),
        (("--topic", "a b:1"), "contains one or more characters other than"),
        (("--profile", "3.9"), "expected one of 4.0, 4.1, 4.2, 4.3, 4.4"),
        (("--port", "70000"), "between 0 and 65535"),
        (("--port", "x"), "invalid int value"),
        (("--what",), "unrecognized arguments"),
    ],
)
def test_a_wrong_command_line_ends_with_2_and_says_why(
    arguments: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        ended: object = main(["mock", *arguments])
    except SystemExit as end:  # argparse says what is no command line at all
        ended = end.code
    out, err = capsys.readouterr()
    assert ended == 2
    assert said in err
    assert out == ""


@pytest.mark.parametrize("module", MODULES)
def test_a_process_that_is_told_nonsense_ends_with_2(module: str) -> None:
    done = subprocess.run(
        command(module, "--topic", "a:0"),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 2
    assert "an invalid non-positive value" in done.stderr
    assert done.stdout == ""


def test_a_port_that_is_taken_ends_with_1() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = subprocess.run(
            command("kip848_client", "--port", str(port)),
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
    assert done.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr


def test_a_port_of_a_listener_that_is_taken_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["mock", "--listener", f"IN:PLAINTEXT:{port}"]) == 1
    assert f"cannot listen on 127.0.0.1:{port}: Address" in capsys.readouterr().err
