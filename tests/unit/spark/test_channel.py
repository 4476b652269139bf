"""The control channel."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kip848_client.errors import ConfigError, TransportError
from kip848_client.spark._channel import ControlServer, ask
from kip848_client.spark._loop import LoopThread


@pytest.fixture
def loop() -> Iterator[LoopThread]:
    found = LoopThread("control")
    yield found
    found.close()


async def _echo(request: dict[str, Any]) -> dict[str, Any]:
    if request.get("harm"):
        raise ConfigError("no")
    return {"heard": request}


def test_a_request_is_answered(tmp_path: Path, loop: LoopThread) -> None:
    path = str(tmp_path / "ctl")
    server = ControlServer(path, _echo)
    loop.call(server.start(), 5_000)
    assert (tmp_path / "ctl").stat().st_mode & 0o777 == 0o600
    assert ask(path, {"status": True}, 5) == {"heard": {"status": True}}
    with pytest.raises(ConfigError, match="ConfigError: no"):
        ask(path, {"harm": True}, 5)
    loop.call(server.stop(), 5_000)
    assert not (tmp_path / "ctl").exists()
    with pytest.raises(TransportError, match="cannot be reached"):
        ask(path, {"status": True}, 5)


@pytest.mark.parametrize("said", [b"\n", b"[]\n", b"\xff\n", b"{\n", b"half a line"])
def test_what_is_no_request_harms_nothing(tmp_path: Path, loop: LoopThread, said: bytes) -> None:
    path = str(tmp_path / "ctl")
    server = ControlServer(path, _echo)
    loop.call(server.start(), 5_000)
    with socket.socket(socket.AF_UNIX) as peer:
        peer.connect(path)
        peer.sendall(said)
    assert ask(path, {"status": True}, 5) == {"heard": {"status": True}}
    loop.call(server.stop(), 5_000)


def test_a_socket_that_a_dead_run_left_is_taken_over(tmp_path: Path, loop: LoopThread) -> None:
    path = str(tmp_path / "ctl")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(path)
    server = ControlServer(path, _echo)
    loop.call(server.start(), 5_000)
    assert "heard" in ask(path, {}, 5)
    other = ControlServer(path, _echo)
    with pytest.raises(ConfigError, match="another query already listens there"):
        loop.call(other.start(), 5_000)
    loop.call(server.stop(), 5_000)


def test_a_path_that_cannot_be_is_named(tmp_path: Path, loop: LoopThread) -> None:
    with pytest.raises(ConfigError, match="option control="):
        loop.call(ControlServer(str(tmp_path / "no" / "ctl"), _echo).start(), 5_000)
    (tmp_path / "file").write_text("a file of somebody's")
    with pytest.raises(ConfigError, match="option control="):
        loop.call(ControlServer(str(tmp_path / "file"), _echo).start(), 5_000)
    assert (tmp_path / "file").read_text() == "a file of somebody's"
