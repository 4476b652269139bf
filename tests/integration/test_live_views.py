"""The demos and ``groups watch`` in a terminal, as processes: what is to be seen, and what is left
of them when somebody ends them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

from mock_coordinator.threaded import BrokerThread
from tests.support.terminal import Terminal

KIP848: Final = ("-m", "kip848_client")
DEMOS: Final = {"demo": ("demo",), "connect": ("connect", "demo")}
FIRST_SCENES: Final = {"demo": "B joins", "connect": "W2 joins"}
MARK: Final = "KIP848_TEST_OF_LIVE_VIEWS"
_GONE_WITHIN_S: Final = 5.0
"""A second on a machine that has nothing else to do."""

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/environ").exists(), reason="child processes are found by way of /proc"
)


@pytest.fixture(autouse=True)
def hangup() -> Iterator[None]:
    """SIGHUP ends programs that begin, also where these tests run under ``nohup``."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


def processes_of(mark: str) -> set[int]:
    """Processes, and their children, that were started with this in their environment."""
    found: set[int] = set()
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            said = (folder / "environ").read_bytes()
            state = (folder / "stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if f"{MARK}={mark}".encode() in said and state != "Z":
            found.add(int(folder.name))
    return found


@contextmanager
def cleaned_up(mark: str) -> Generator[None]:
    """No test leaves a process behind, also one that fails."""
    try:
        yield
    finally:
        for number in processes_of(mark):
            os.kill(number, signal.SIGKILL)


def all_gone(mark: str) -> bool:
    until = time.monotonic() + _GONE_WITHIN_S
    while processes_of(mark):
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
    return True


def until_lines(process: subprocess.Popen[str], scene: str) -> Iterator[str]:
    """The lines up to this one."""
    assert process.stdout is not None
    for line in process.stdout:
        yield line
        if scene in line:
            return


SLOW: Final = pytest.mark.everything("each begins a demo, and the others show the same")


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("demo", signal.SIGTERM),
        ("connect", signal.SIGKILL),
        pytest.param("demo", signal.SIGHUP, marks=SLOW),
        pytest.param("demo", signal.SIGKILL, marks=SLOW),
        pytest.param("connect", signal.SIGTERM, marks=SLOW),
        pytest.param("connect", signal.SIGHUP, marks=SLOW),
    ],
)
def test_a_demo_that_is_ended_takes_its_members_with_it(name: str, how: signal.Signals) -> None:
    mark = f"{os.getpid()}-{name}-{how}"
    with cleaned_up(mark):
        process = subprocess.Popen(
            [sys.executable, *KIP848, *DEMOS[name]],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {MARK: mark},
        )
        for _ in until_lines(process, FIRST_SCENES[name]):
            pass
        assert len(processes_of(mark)) >= 2
        process.send_signal(how)
        _, errors = process.communicate(timeout=30)
        assert process.returncode == (-how if how is signal.SIGKILL else 128 + how)
        assert errors == ""
        assert all_gone(mark)


@pytest.mark.everything("it begins both demos")
@pytest.mark.parametrize("name", DEMOS)
def test_a_terminal_that_is_closed_ends_the_demo(name: str) -> None:
    mark = f"{os.getpid()}-{name}-closed"
    with cleaned_up(mark):
        with (
            Terminal(80, 24) as terminal,
            terminal.running(*KIP848, *DEMOS[name], **{MARK: mark}) as process,
        ):
            terminal.wait_for(FIRST_SCENES[name])
            process.send_signal(signal.SIGHUP)
            assert terminal.wait(process) == 128 + signal.SIGHUP
            assert not terminal.is_alternate
        assert all_gone(mark)


@pytest.mark.everything("it begins a demo")
def test_an_ignored_hangup_stays_ignored() -> None:
    mark = f"{os.getpid()}-nohup"
    with cleaned_up(mark):
        process = subprocess.Popen(
            ["sh", "-c", 'trap "" HUP; exec "$@"', "sh", sys.executable, *KIP848, "demo"],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {MARK: mark},
        )
        lines = until_lines(process, "B joins")
        next(lines)
        process.send_signal(signal.SIGHUP)
        assert list(lines)[-1].endswith("B joins\n")
        process.terminate()
        process.communicate(timeout=30)
        assert process.returncode == 128 + signal.SIGTERM


def check_end(rows: list[str], head: str, *, last: str) -> None:
    assert sum(row.startswith(head) for row in rows) == 1, rows
    assert any(row.startswith(last) for row in rows), rows
    assert not [row for row in rows if row.startswith(("ns ", "yments"))], rows


@pytest.mark.everything("the demos take as long as their stories")
@pytest.mark.parametrize(
    ("columns", "height"), [(80, 24), (84, 24), (100, 30), (160, 50), (80, 10)]
)
@pytest.mark.parametrize("name", DEMOS)
def test_a_demo_on_terminals_of_each_size(name: str, columns: int, height: int) -> None:
    head = {"demo": "member  state", "connect": "worker  state"}[name]
    with Terminal(columns, height) as terminal, terminal.running(*KIP848, *DEMOS[name]) as process:
        for row in (FIRST_SCENES[name], "is killed"):
            rows = terminal.wait_for(row) if height > 10 else terminal.wait_for(head)
            assert rows[0].startswith(head)
            check_end(rows, head, last=head)
            terminal.resize(columns + 20, height + 5)
        terminal.resize(columns, height)
        assert terminal.wait(process, 90) == 0, terminal.rows()
        check_end(terminal.rows()[-height:], head if height > 10 else "ok:", last="ok: every")


@pytest.mark.mock_broker({"orders": 2})
def test_a_group_is_watched_in_a_terminal_that_changes(mock_broker: BrokerThread) -> None:
    group = ("groups", "reset-offsets", "--group", "billing", "--topic", "orders", "--to-latest")
    made = [sys.executable, *KIP848, *group, "--create", "--execute"]
    bootstrap = ("--bootstrap-server", mock_broker.bootstrap)
    subprocess.run([*made, *bootstrap], check=True, timeout=60, stdout=subprocess.DEVNULL)
    watch = ("groups", "watch", "billing", "--interval", "3600", *bootstrap)
    with Terminal(80, 24) as terminal, terminal.running(*KIP848, *watch) as process:
        rows = terminal.wait_for("orders")
        for columns, height in ((100, 30), (40, 24), (160, 50), (80, 10), (80, 24)):
            terminal.resize(columns, height)
            rows = terminal.wait_for_change()
            assert rows[0] == "GROUP billing"
            assert sum(row.startswith("GROUP") for row in rows) == 1
        assert [row.split()[:4] for row in rows[-2:]] == [
            ["orders", "0", "0", "0"],
            ["orders", "1", "0", "0"],
        ]
        process.send_signal(signal.SIGTERM)
        assert terminal.wait(process) == 128 + signal.SIGTERM
        assert not terminal.is_alternate
        assert terminal.rows()[-2:] == rows[-2:]
