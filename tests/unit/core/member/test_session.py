"""A member that knows its session time-out drops what it has when others may already have it."""

from __future__ import annotations

from kip848_client.core.member import (
    Fenced,
    LossReason,
    MemberState,
    PartitionsReleased,
    ReleasePartitions,
    StartPartitions,
)
from tests.unit.core.member._harness import MemberHarness, T, part

SESSION_MS = 12_000


def silent() -> MemberHarness:
    """A member whose heartbeats get lost from now on."""
    harness = MemberHarness(session_timeout_ms=SESSION_MS).stable(epoch=4).calm(epoch=4)
    harness.auto_lookup = False
    return harness


def test_it_counts_from_when_the_last_accepted_heartbeat_was_sent() -> None:
    harness = MemberHarness(session_timeout_ms=SESSION_MS).stable(epoch=4).calm(epoch=4)
    harness.next_heartbeat()
    sent_ms = harness.now
    harness.accept(4, after=1_000)
    harness.auto_lookup = False
    harness.next_heartbeat()
    harness.lose(LossReason.TIMED_OUT, after=sent_ms + SESSION_MS - 1 - harness.now)
    harness.expect(MemberState.STABLE)

    harness.advance(1)

    harness.expect(MemberState.FENCED)
    assert harness.out(Fenced) == [Fenced("the end of the session", 4)]
    [release] = harness.out(ReleasePartitions)
    assert (release.partitions, release.lost, release.last) == (part(T, 0, 1, 2), True, True)


def test_it_joins_again_as_itself_when_all_is_dropped() -> None:
    harness = silent()
    harness.advance(2 * SESSION_MS)
    harness.expect(MemberState.FENCED)
    harness.auto_lookup = True

    harness.released()

    harness.expect(MemberState.JOINING)
    assert harness.intent.member_epoch == 0


def test_an_answer_to_a_heartbeat_of_the_old_session_does_not_count() -> None:
    harness = silent()
    harness.next_heartbeat()
    attempt_epoch = harness.intent.member_epoch
    harness.advance(2 * SESSION_MS)
    harness.expect(MemberState.FENCED)

    harness.accept(attempt_epoch)

    harness.expect(MemberState.FENCED)


def test_one_that_does_not_know_it_goes_on() -> None:
    harness = MemberHarness().stable(epoch=4).calm(epoch=4)
    harness.auto_lookup = False
    harness.advance(10 * SESSION_MS)
    harness.expect(MemberState.STABLE)


def test_who_leaves_is_not_fenced_on_the_way() -> None:
    harness = silent()
    harness.leave(within=3 * SESSION_MS)
    harness.expect(MemberState.PREPARE_LEAVING)
    harness.advance(2 * SESSION_MS)
    assert not harness.out(Fenced)


def test_a_callback_that_ends_after_the_session_is_followed_by_no_start() -> None:
    """A process that slept takes what happened meanwhile before its timer."""
    harness = MemberHarness(session_timeout_ms=SESSION_MS).stable(epoch=4).calm(epoch=4)
    harness.target(5, t=[0, 3])
    harness.flushed()
    [release] = harness.out(ReleasePartitions)
    assert release.partitions == part(T, 1, 2)

    late = harness.core.step(harness.now + 2 * SESSION_MS, PartitionsReleased(release.plan))

    assert [each for each in late if isinstance(each, Fenced)]
    assert not [each for each in late if isinstance(each, StartPartitions)]
    harness.expect(MemberState.FENCED)
