"""When client-side assignors hear of a target, and that a question to compute gets through."""

from __future__ import annotations

from kip848_client.core.client_assignors import ASSIGNOR_FAILED
from kip848_client.core.group import (
    CallAssignors,
    CallListener,
    ListenerMethod,
    ListenerReturned,
    PrepareAssignment,
)
from kip848_client.core.member import (
    AssignorNews,
    HeartbeatAccepted,
    HeartbeatAnswered,
    Polled,
    SendHeartbeat,
    Subscribed,
)
from tests.unit.core.group._harness import GroupHarness, T


def answer(
    harness: GroupHarness, epoch: int, news: AssignorNews, *numbers: int, shown: bool = True
) -> None:
    """The newest heartbeat is answered; ``numbers`` can be used at once."""
    assignment = ((T, numbers),) if shown else None
    outcome = HeartbeatAccepted(None, epoch, 5_000, assignment, news)
    harness.feed(HeartbeatAnswered(harness.newest_of(SendHeartbeat).attempt, outcome))


def acknowledged(harness: GroupHarness, epoch: int) -> None:
    """The heartbeat that is open is answered without news, and the next one is due."""
    answer(harness, epoch, AssignorNews(), shown=False)
    harness.advance(5_000)


def joined() -> GroupHarness:
    harness = GroupHarness(auto_commit=False)
    harness.feed(Subscribed(frozenset({"t"})), Polled(waiting=True))
    return harness


def test_assignors_hear_of_a_target_before_the_listener_and_once_for_an_epoch() -> None:
    harness = joined()
    target = AssignorNews(target=((T, (0,)), (T, (1,))), metadata=b"m", metadata_version=1)
    answer(harness, 2, target, 0)
    call = harness.newest_of(CallAssignors)
    assert (call.member_epoch, call.news) == (2, target)
    assert not harness.all(CallListener)
    harness.feed(ListenerReturned(call.number, failed=True))  # which changes nothing
    assert harness.newest_of(CallListener).method is ListenerMethod.ASSIGNED
    harness.returned()
    acknowledged(harness, 2)
    answer(harness, 2, target, 0, 1)
    assert len(harness.all(CallAssignors)) == 1
    harness.returned()
    acknowledged(harness, 2)
    answer(harness, 3, AssignorNews(target=((T, (0, 1)),), error=ASSIGNOR_FAILED), 0, 1)
    assert [each.news.error for each in harness.all(CallAssignors)] == [0, ASSIGNOR_FAILED]


def test_an_answer_without_an_assignment_has_nothing_to_tell() -> None:
    harness = joined()
    answer(harness, 2, AssignorNews(target=()))
    harness.feed(ListenerReturned(harness.newest_of(CallAssignors).number))
    harness.returned()
    answer(harness, 3, AssignorNews(), shown=False)
    assert len(harness.all(CallAssignors)) == 1


def test_the_epoch_of_a_new_membership_may_be_that_of_the_former() -> None:
    harness = joined()
    answer(harness, 2, AssignorNews(target=((T, (0,)),)), 0)
    harness.feed(ListenerReturned(harness.newest_of(CallAssignors).number))
    harness.returned()
    answer(harness, 2, AssignorNews(), shown=False)
    harness.fence()
    harness.returned()
    answer(harness, 2, AssignorNews(target=((T, (0,)),)), 0)
    assert len(harness.all(CallAssignors)) == 2


def test_a_question_to_compute_is_acted_upon() -> None:
    harness = joined()
    answer(harness, 2, AssignorNews(should_compute=True, target=()))
    assert harness.newest_of(PrepareAssignment).member_epoch == 2
    assert len(harness.all(PrepareAssignment)) == 1
