"""The heap of deadlines: moving one is cheap, and the order is right all the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mock_coordinator.core.groups.state.timers import Timer, TimerKind, Timers


def _timer(name: str) -> Timer:
    return Timer(TimerKind.SESSION, "g", name)


def _fired(timers: Timers, now_ms: int) -> list[str]:
    """Run what is due; the members' names in order."""
    names: list[str] = []
    while (due := timers.pop_due(now_ms)) is not None:
        names.append(due[0].member_id)
    return names


def test_a_moved_deadline_counts_and_the_old_one_does_not() -> None:
    timers = Timers()
    timers.arm(_timer("a"), 10)
    timers.arm(_timer("a"), 30, payload=7)
    timers.arm(_timer("b"), 20)
    assert timers.deadline_ms == 20
    assert timers.pop_due(19) is None
    assert timers.pop_due(20) == (_timer("b"), 0)
    assert timers.pop_due(29) is None
    assert timers.pop_due(30) == (_timer("a"), 7)
    assert timers.deadline_ms is None
    assert len(timers) == 0


def test_a_deadline_may_move_forward() -> None:
    timers = Timers()
    timers.arm(_timer("a"), 30)
    timers.arm(_timer("a"), 10)
    assert timers.pop_due(10) == (_timer("a"), 0)
    assert timers.pop_due(100) is None


def test_the_latest_armed_of_one_millisecond_comes_last() -> None:
    timers = Timers()
    for name in "abc":
        timers.arm(_timer(name), 10)
    timers.arm(_timer("a"), 10)
    assert _fired(timers, 10) == ["b", "c", "a"]


def test_a_cancelled_timer_never_fires_and_can_be_armed_again() -> None:
    timers = Timers()
    timers.arm(_timer("a"), 10)
    timers.cancel(_timer("a"))
    timers.cancel(_timer("unknown"))
    assert timers.deadline_ms is None
    timers.arm(_timer("a"), 20)
    assert timers.deadline_of(_timer("a")) == 20
    assert timers.pop_due(20) == (_timer("a"), 0)


Step = tuple[str, str, int]
STEPS = st.lists(
    st.tuples(st.sampled_from(["arm", "cancel", "run"]), st.sampled_from("abcd"), st.integers(0, 9))
)


@given(STEPS)
def test_the_heap_behaves_like_a_sorted_dictionary(steps: list[Step]) -> None:
    timers = Timers()
    model: dict[str, tuple[int, int]] = {}
    for number, (what, name, value) in enumerate(steps):
        if what == "arm":
            timers.arm(_timer(name), value)
            model[name] = (value, number)
        elif what == "cancel":
            timers.cancel(_timer(name))
            model.pop(name, None)
        else:
            due = [name for name in sorted(model, key=model.__getitem__) if model[name][0] <= value]
            assert _fired(timers, value) == due
            for expired in due:
                del model[expired]
        assert timers.deadline_ms == min((at[0] for at in model.values()), default=None)
        assert len(timers) == len(model)


def test_ten_thousand_moving_deadlines_do_not_grow_the_heap() -> None:
    timers = Timers()
    for round_ in range(20):
        for member in range(1_000):
            timers.arm(_timer(str(member)), round_ * 1_000 + 45_000)
    assert len(timers._heap) == 1_000
