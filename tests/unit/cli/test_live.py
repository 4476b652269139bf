"""Live views on terminals of each size, drawn by an emulator: what is to be seen, not what was
written."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

import pytest

from kip848_client.cli._demo._screen import Screen
from kip848_client.cli._live import Live, can_be_live, cut
from kip848_client.cli.connect import _display as connect_display
from kip848_client.cli.demo import _display as demo_display
from tests.support.terminal import Terminal

SIZES: Final = ((80, 24), (84, 24), (100, 30), (160, 50), (80, 10), (60, 24))
ITEMS: Final = tuple(
    f"{name}-{task}" for name in ("clicks", "orders", "payments") for task in range(5)
)
LONG: Final = "on the embedded coordinator at 127.0.0.1:34469: one group, 6 partitions, and so on"
W1: Final = connect_display.Row("W1", "STABLE", 4, ITEMS)
W2: Final = connect_display.Row("W2", "RECONCILING", 4, ())


@pytest.fixture(autouse=True)
def a_terminal_that_can(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")


def heads(rows: list[str]) -> int:
    return sum(row.startswith("worker  state") for row in rows)


@pytest.mark.parametrize("has_alternate", [True, False])
@pytest.mark.parametrize(("columns", "height"), SIZES)
def test_a_table_stays_one_table(columns: int, height: int, *, has_alternate: bool) -> None:
    with Terminal(columns, height, has_alternate=has_alternate) as terminal:
        terminal.out.write("$ kip848 connect demo\n")
        with Screen(terminal.out, connect_display.table) as screen:
            for second in range(8):
                screen.news(second, f"{second} {LONG}")
                screen.draw(second, [W1, W2], "14 items")
                rows = terminal.rows()
                assert len(rows) <= height
                assert heads(rows) == 1
                assert rows[0].startswith("worker  state")
            assert terminal.is_alternate
        rows = terminal.rows()
        assert not terminal.is_alternate
        assert heads(rows) == (1 if height > 12 else heads(rows)) <= 1
        assert rows[-1].startswith("W2")
        shown = " ".join(" ".join(rows).split())
        if height == 50:
            assert rows[0] == "$ kip848 connect demo" or not has_alternate
            assert all(f"{second}.0 s {second} {LONG}" in shown for second in range(8))
        assert all(item in shown for item in ITEMS[-3:])


def test_the_story_is_the_whole_one_in_the_end_and_the_newest_before() -> None:
    with Terminal(80, 12) as terminal:
        with Screen(terminal.out, demo_display.table) as screen:
            for number in range(9):
                screen.news(number, f"news {number}")
            screen.draw(9, [demo_display.Row("A", "STABLE", 3, (0, 1), 120)], "so it stands")
            rows = terminal.rows()
            assert rows[3] == "so it stands"
            assert [row.split()[-1] for row in rows[5:]] == [*map(str, range(2, 9))]
        assert terminal.raw.rpartition("\x1b[?1049l")[2].count("news") == 9


def test_a_resize_in_the_middle_leaves_nothing_behind() -> None:
    with Terminal(160, 50) as terminal:
        with Screen(terminal.out, connect_display.table) as screen:
            screen.news(0.0, LONG * 2)
            for columns, height in (*SIZES, *reversed(SIZES)):
                terminal.resize(columns, height)
                screen.draw(1.0, [W1, W2], "14 items")
                rows = terminal.rows()
                assert heads(rows) == 1
                shown = " ".join(" ".join(rows).split())
                assert shown.count("W1") == shown.count("W2") == shown.count("14 items") == 1
                assert shown.count("clicks-0") == 1
        assert heads(terminal.rows()) == 1


def test_a_table_that_is_too_high_says_how_much_is_missing() -> None:
    rows = [demo_display.Row(f"M{number}", "STABLE", 3, (number,), 1) for number in range(30)]
    with Terminal(80, 10) as terminal, Screen(terminal.out, demo_display.table) as screen:
        screen.news(0.0, "begins")
        screen.draw(0.0, rows, "so it stands")
        shown = terminal.rows()
        assert len(shown) <= 10
        assert shown[0].startswith("member")
        assert "... 24 more lines" in shown
        assert "so it stands" in shown
    assert cut(["a", "b"], 1) == ["... 2 more lines"]
    assert cut(["a", "b"], 0) == []


def test_characters_that_take_two_cells_are_counted_so() -> None:
    row = connect_display.Row("注文", "STABLE", 4, ("注文" * 30, "e\N{COMBINING ACUTE ACCENT}t"))
    for columns in (80, 81):
        with Terminal(columns, 24) as terminal:
            with Screen(terminal.out, connect_display.table) as screen:
                for _ in range(3):
                    screen.draw(0.0, [row, W2], "注文" * 60)
                    rows = terminal.rows()
                    assert heads(rows) == 1
                    assert sum(each.startswith("W2") for each in rows) == 1
            assert heads(terminal.rows()) == 1


@pytest.mark.parametrize("term", ["dumb", ""])
def test_what_cannot_move_its_cursor_gets_plain_lines(
    term: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", term or "dumb")
    if not term:
        monkeypatch.delenv("TERM")
    with Terminal(80, 24) as terminal:
        assert not can_be_live(terminal.out)
        with Screen(terminal.out, connect_display.table) as screen:
            screen.draw(0.0, [W2], "footer")
        assert terminal.raw == ""
    assert capsys.readouterr().out == ("  0.0 s    W2 RECONCILING generation 4 runs nothing\n")


def test_a_terminal_is_given_back_whatever_happens() -> None:
    with Terminal(80, 24) as terminal:
        with suppress(KeyboardInterrupt), Live(terminal.out) as live:
            live.show(lambda width, _height: ["x" * width])
            assert terminal.is_alternate
            raise KeyboardInterrupt
        assert terminal.rows() == ["x" * 80]
        assert not terminal.is_alternate
        assert "\x1b[?25h" in terminal.raw
        assert "\x1b[?7h" in terminal.raw


def test_names_of_others_cannot_draw() -> None:
    with Terminal(80, 24) as terminal, Live(terminal.out) as live:
        live.show(lambda _width, _height: ["a\x1b[2J\nb\u202ec\x9b5m"])
        assert terminal.rows() == [r"a\x1b[2J\nb\u202ec\x9b5m"]
