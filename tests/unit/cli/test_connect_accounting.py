"""The accounting of ``kip848 connect demo``: what counts as moved, lost, and run twice."""

from __future__ import annotations

from kip848_client.cli.connect._display import Row, footer_line, table, verdict_lines
from kip848_client.cli.connect.core._accounting import Accounting


def moved(back_s: float) -> Accounting:
    """``a`` runs at W1 until 5, and from ``back_s`` at W2; ``a-0`` stays."""
    accounting = Accounting(("a", "a-0"))
    for item in ("a", "a-0"):
        accounting.started("W1", item, 1.0)
    accounting.started("W2", "a", back_s)  # may be heard before the stop
    accounting.stopped("W1", "a", 5.0)
    return accounting


def test_an_item_that_is_stopped_before_it_is_started_elsewhere_has_moved() -> None:
    verdict = moved(6.5).verdict()
    assert verdict.good
    assert (verdict.configured, verdict.running_once, verdict.moves) == (2, 2, 1)
    assert verdict.rest_s == 1.5
    first, *_, said = verdict_lines(verdict)
    assert first == "configured 2  running once 2  ran twice 0  lost 0  moves 1"
    assert "ok: every item runs" in said


def test_an_item_that_is_started_before_it_is_stopped_elsewhere_ran_twice() -> None:
    verdict = moved(4.5).verdict()
    assert verdict.ran_twice == ("a",)
    assert verdict_lines(verdict)[-1].endswith("FAILED: ran twice: a")


def test_what_ran_at_a_worker_that_is_gone_is_lost_until_it_runs_again() -> None:
    accounting = moved(6.0)
    accounting.gone("W1", 7.0)
    assert (accounting.nowhere, accounting.of("W2"), accounting.of("W1")) == (("a-0",), ("a",), ())
    assert verdict_lines(accounting.verdict())[-1].endswith("FAILED: lost: a-0")
    accounting.started("W1", "a-0", 8.0)
    verdict = accounting.verdict()
    assert verdict.good
    assert verdict.moves == 1  # back at its own worker is no move


def test_two_workers_that_run_the_same_at_the_end() -> None:
    accounting = Accounting(("a",))
    accounting.started("W1", "a", 1.0)
    accounting.started("W2", "a", 2.0)
    assert accounting.verdict().ran_twice == ("a",)


def test_the_display() -> None:
    row = Row("W1", "STABLE", 3, ("a", "a-0"))
    assert row.plain() == "W1 STABLE generation 3 runs a, a-0"
    assert Row("W2", "killed", None, ()).plain() == "W2 killed generation - runs nothing"
    assert table([row]).fitted(80) == [
        "worker  state         generation  runs",
        "W1      STABLE        3           a a-0",
    ]
    assert footer_line(1.0, (), 0.0).endswith("everything runs")
    assert footer_line(1.0, ("a",), 0.0).endswith("at rest: a")
    assert footer_line(1.0, ("a",), 2.0).endswith("deferred, for 2.0 s more: a")
