"""The demo's board: in place on a terminal, changes only elsewhere."""

from __future__ import annotations

from io import StringIO

from kip848_client.cli._screen import Screen
from kip848_client.cli.demo._board import Row, table, verdict_text
from kip848_client.cli.demo._tally import Verdict

A = Row("A", "STABLE", 3, (0, 1), 120)


def test_plain_lines_tell_only_what_changed() -> None:
    out = StringIO()
    screen = Screen(out, table, live=False)
    screen.draw(1.0, [A], "footer")
    screen.draw(1.2, [A], "footer")
    screen.draw(1.4, [Row("A", "STABLE", 4, (0,), 130)], "footer")
    lines = out.getvalue().splitlines()
    assert [line.split("s    ")[1] for line in lines] == [
        "A STABLE epoch 3 owns 0,1",
        "A STABLE epoch 4 owns 0",
    ]
    assert "\x1b" not in out.getvalue()


def test_a_terminal_is_redrawn_in_place() -> None:
    out = StringIO()
    screen = Screen(out, table, live=True)
    screen.draw(1.0, [A], "footer")
    height = out.getvalue().count("\n")
    screen.news(1.1, "B joins")
    screen.draw(1.2, [A, Row("B", "JOINING", None, (), 0)], "footer")
    assert f"\x1b[{height}F" in out.getvalue()
    assert "B joins" in out.getvalue()


def test_the_verdict_names_every_figure() -> None:
    text = verdict_text(Verdict(10, 9, 1, 2, {0: 40, 1: 5}))
    assert "produced 10  consumed 9  lost 1  duplicated 2" in text
    assert "0: 40 ms  1: 5 ms" in text
    assert "FAILED" in text
    assert "ok" in verdict_text(Verdict(1, 1, 0, 0, {0: 0}))
