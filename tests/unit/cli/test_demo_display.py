"""The demo's display where nothing is redrawn: changes only. On a terminal: ``test_live.py``."""

from __future__ import annotations

import io

import pytest

from kip848_client.cli._demo._screen import Screen
from kip848_client.cli.demo._display import Row, table, verdict_lines
from kip848_client.cli.demo.core._accounting import DeliveryVerdict

A = Row("A", "STABLE", 3, (0, 1), 120)


def test_plain_lines_tell_only_what_changed(capsys: pytest.CaptureFixture[str]) -> None:
    with Screen(io.StringIO(), table) as screen:
        screen.draw(1.0, [A], "footer")
        screen.draw(1.2, [A], "footer")
        screen.draw(1.4, [Row("A", "STABLE", 4, (0,), 130)], "footer")
    told = capsys.readouterr().out
    assert [line.split("s    ")[1] for line in told.splitlines()] == [
        "A STABLE epoch 3 owns 0,1",
        "A STABLE epoch 4 owns 0",
    ]
    assert "\x1b" not in told


def test_a_member_without_partitions_says_what_it_waits_for() -> None:
    waiting = Row("B", "STABLE", 4, (), 0)
    assert waiting.plain() == "B STABLE epoch 4 owns nothing yet: waiting for other members"
    assert "none yet: waiting for other members" in "\n".join(table([waiting]).fitted(80))
    assert Row("B", "left", None, (), 7).plain() == "B left epoch - owns nothing"


def test_the_verdict_names_every_figure() -> None:
    text = "\n".join(verdict_lines(DeliveryVerdict(10, 9, 1, 2, {0: 40, 1: 5})))
    assert "produced 10  consumed 9  lost 1  duplicated 2" in text
    assert "0: 40 ms  1: 5 ms" in text
    assert "duplicated 2: a member was killed after it read these records" in text
    assert "FAILED" in text
    good = "\n".join(verdict_lines(DeliveryVerdict(1, 1, 0, 0, {0: 0})))
    assert "ok" in good
    assert "was killed" not in good
