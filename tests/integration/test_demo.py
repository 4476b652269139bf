"""``kip848 demo`` as a user runs it: on the embedded coordinator, and on a real broker."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace

import pytest

from kip848_client.cli import main
from kip848_client.cli.demo import _demo
from kip848_client.cli.demo._demo import PRODUCES_ON_S, SCRIPT
from tests.support.real_kafka import RealKafka


def demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kip848_client", "demo", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def check(finished: subprocess.CompletedProcess[str]) -> None:
    assert finished.returncode == 0, finished.stdout + finished.stderr
    figures = re.search(r"produced (\d+)  consumed (\d+)  lost 0  duplicated", finished.stdout)
    assert figures, finished.stdout
    assert int(figures[1]) == int(figures[2]) > 100  # how many is up to the machine
    assert "A is killed" in finished.stdout
    assert finished.stderr == ""


@pytest.mark.everything("it takes as long as its story")
def test_on_the_embedded_coordinator() -> None:
    check(demo())


def test_the_story_told_in_a_hurry(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hurried = tuple(replace(step, at_s=step.at_s / 4) for step in SCRIPT)
    monkeypatch.setattr(_demo, "SCRIPT", hurried)
    monkeypatch.setattr(_demo, "PRODUCES_ON_S", PRODUCES_ON_S / 4)
    code = main(["demo"])
    printed = capsys.readouterr()
    check(subprocess.CompletedProcess((), code, printed.out, printed.err))


@pytest.mark.everything("its processes come and go twice more")
def test_a_machine_whose_processes_start_late_loses_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Members left before they were there, and the end came before anybody had read a record."""
    hurried = tuple(replace(step, at_s=0.0) for step in SCRIPT)
    monkeypatch.setattr(_demo, "SCRIPT", hurried)
    monkeypatch.setattr(_demo, "PRODUCES_ON_S", 0.5)
    code = main(["demo"])
    printed = capsys.readouterr().out
    assert code == 0, printed
    assert re.search(r"lost 0  duplicated", printed), printed
    killed = printed[printed.index("A is killed") :]
    assert "A starting" not in killed[: killed.index("A comes back")]


@pytest.mark.real_kafka
def test_on_a_real_broker(real_kafka: RealKafka) -> None:
    check(demo("--bootstrap", real_kafka.bootstrap))


@pytest.mark.parametrize("bootstrap", ["127.0.0.1:1", "nonsense"])
def test_without_a_broker_it_says_so(bootstrap: str) -> None:
    finished = demo("--bootstrap", bootstrap)
    assert finished.returncode == 1
    assert finished.stderr.startswith("kip848 demo: ")
    assert "Traceback" not in finished.stderr
