"""``kip848 demo`` as a user runs it: on the embedded coordinator, and on a real broker."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from tests.support.real_kafka import RealKafka


def demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "kip848_client", "demo", *arguments],
        capture_output=True,
        text=True,
        timeout=40,
        check=False,
    )


def check(finished: subprocess.CompletedProcess[str]) -> None:
    assert finished.returncode == 0, finished.stdout + finished.stderr
    figures = re.search(r"produced (\d+)  consumed (\d+)  lost 0  duplicated", finished.stdout)
    assert figures, finished.stdout
    assert int(figures[1]) == int(figures[2]) > 100  # how many is up to the machine
    assert "A is killed" in finished.stdout
    assert finished.stderr == ""


def test_on_the_embedded_coordinator() -> None:
    check(demo())


@pytest.mark.real_kafka
def test_on_a_real_broker(real_kafka: RealKafka) -> None:
    check(demo("--bootstrap", real_kafka.bootstrap))


@pytest.mark.parametrize("bootstrap", ["127.0.0.1:1", "nonsense"])
def test_without_a_broker_it_says_so(bootstrap: str) -> None:
    finished = demo("--bootstrap", bootstrap)
    assert finished.returncode == 1
    assert finished.stderr.startswith("kip848 demo: ")
    assert "Traceback" not in finished.stderr
