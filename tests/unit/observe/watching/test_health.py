"""Facts in, a judgement out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kip848_client.core.member import UNREACHABLE_AFTER_MS, MemberState
from kip848_client.errors import Kip848Error
from kip848_client.observe.core.watching import ConsumerHealth, Lifecycle

WELL = ConsumerHealth(
    state=MemberState.STABLE,
    member_epoch=4,
    assigned=2,
    coordinator="kafka:9092",
    heartbeat_age_ms=1_200,
    heartbeat_interval_ms=5_000,
    unreachable_ms=0,
    poll_age_ms=0,
    max_poll_interval_ms=300_000,
    event_loop_late_ms=1,
    consecutive_fences=0,
)


def test_all_is_well() -> None:
    assert WELL.live
    assert WELL.ready
    assert not WELL.stalled
    assert WELL.problems == ()


def test_without_a_membership_all_is_well() -> None:
    alone = replace(WELL, state=None, poll_age_ms=None, coordinator=None)
    assert alone.live
    assert alone.ready


@pytest.mark.parametrize(
    "state",
    [
        MemberState.JOINING,
        MemberState.FENCED,
        MemberState.UNSUBSCRIBED,
        MemberState.PREPARE_LEAVING,
        MemberState.LEAVING,
    ],
)
def test_out_of_the_group_it_is_live_and_not_ready(state: MemberState) -> None:
    assert replace(WELL, state=state).live
    assert not replace(WELL, state=state).ready


def test_half_of_the_interval_without_a_poll_is_a_stall() -> None:
    assert not replace(WELL, poll_age_ms=149_999).stalled
    stalled = replace(WELL, poll_age_ms=150_000)
    assert stalled.stalled
    assert stalled.live, "there is time to go on"
    assert "has not asked for records for 150 s" in stalled.problems[0]


def test_an_application_that_does_not_go_on_is_not_live() -> None:
    assert not replace(WELL, poll_age_ms=300_000).live
    stale = replace(WELL, state=MemberState.STALE, poll_age_ms=1_000)
    assert stale.stalled
    assert not stale.live
    assert "has left its group" in stale.problems[0]


def test_an_unreachable_coordinator_is_not_cured_by_a_restart() -> None:
    assert replace(WELL, unreachable_ms=29_999).ready
    unreachable = replace(WELL, unreachable_ms=30_000)
    assert unreachable.live
    assert not unreachable.ready
    assert "has not answered for 30 s" in unreachable.problems[0]


def test_the_page_names_the_silence_that_counts_as_unreachable() -> None:
    page = Path(__file__).parents[4] / "docs" / "how-to" / "watch.md"
    silence = f"has not answered for {UNREACHABLE_AFTER_MS // 1000} s;"
    assert silence in page.read_text(encoding="utf-8")


def test_what_ended_it_is_told_first() -> None:
    dead = replace(WELL, state=MemberState.FATAL, fatal_error=Kip848Error("no such group"))
    assert not dead.live
    assert not dead.ready
    assert dead.problems[0] == "the consumer has ended: no such group"


def test_one_fence_is_nothing_to_speak_of() -> None:
    assert replace(WELL, consecutive_fences=1).problems == ()
    assert "3 times in a row" in replace(WELL, consecutive_fences=3).problems[0]


@pytest.mark.parametrize("phase", Lifecycle)
def test_before_the_start_and_after_the_stop_it_is_live_and_not_ready(phase: Lifecycle) -> None:
    health = replace(WELL, state=phase, heartbeat_age_ms=None, poll_age_ms=None, assigned=0)
    assert health.live
    assert not health.ready
    assert health.problems == ()
    assert str(health.state) == phase.name


def test_a_state_is_told_by_its_name() -> None:
    assert str(WELL.state) == "STABLE"
    assert f"{WELL.state}" == "STABLE"


def test_what_is_judged_is_in_the_repr() -> None:
    waiting = replace(WELL, waits=("waiting for topic t for 3 s: gone",))
    text = repr(waiting)
    assert text.startswith("ConsumerHealth(live=True, ready=True, problems=('waiting")
    assert "state=STABLE" in text
    assert "assigned=2" in text


def test_a_wait_is_a_problem() -> None:
    assert replace(WELL, waits=("it waits",)).problems == ("it waits",)
