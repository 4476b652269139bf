"""What a ``commit()`` of the application means, and what is said of what is not ours any more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kip848_client import CommitFailed, OffsetAndMetadata, TopicPartition
from kip848_client.consumer._error_box import ErrorBox
from kip848_client.consumer._user_commits import UserCommits
from kip848_client.core.offsets import CommitDone, CommittableOffset, InFlight, OffsetTracker
from kip848_client.errors import ConsumerClosed, Kip848Error, NotAssigned, RequestTimedOut
from tests.unit.consumer.fakes import FakeClock

pytestmark = pytest.mark.asyncio

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


class FakeCommits:
    """Stores what it is given, but for ``refuse``."""

    def __init__(self, tracker: OffsetTracker) -> None:
        self.asked: list[Mapping[TopicPartition, CommittableOffset]] = []
        self.refuse: dict[TopicPartition, Kip848Error] = {}
        self.closed: Kip848Error | None = None
        self._tracker = tracker

    async def commit(
        self, offsets: Mapping[TopicPartition, CommittableOffset], _deadline_ms: int
    ) -> CommitDone:
        self.asked.append(offsets)
        if self.closed is not None:
            raise self.closed
        stored = {tp: each for tp, each in offsets.items() if tp not in self.refuse}
        for tp, each in stored.items():
            self._tracker.committed(tp, each.offset, self._tracker.generation(tp))
        return CommitDone(1, stored, {tp: self.refuse[tp] for tp in offsets if tp in self.refuse})


class UserCommitsHarness:
    """A member that has A and B, and got 10 records of A."""

    def __init__(self) -> None:
        self.tracker = OffsetTracker()
        self.tracker.assign([A, B])
        self.tracker.seek(B, 0, committed=0)
        self.tracker.delivered(A, 10)
        self.in_flight = InFlight()
        self.in_flight.of("me").add(A, CommittableOffset(0))
        self.errors = ErrorBox(lambda: None)
        self.commits = FakeCommits(self.tracker)
        self.in_group = True
        commits: Any = self.commits
        self.user_commits = UserCommits(
            commits,
            self.tracker,
            self.in_flight,
            self.errors,
            FakeClock(),
            refresh_tracker=lambda: None,
            in_group=lambda: self.in_group,
            timeout_ms=1000,
        )

    def take(self, *partitions: TopicPartition) -> None:
        self.tracker.lose(partitions)
        self.tracker.forget(partitions)


async def test_everything_handed_out_is_stored() -> None:
    harness = UserCommitsHarness()
    assert await harness.user_commits.commit(None) == {
        A: OffsetAndMetadata(10),
        B: OffsetAndMetadata(0),
    }
    # an automatic commit must not fall behind that
    assert harness.in_flight.open() == {A: CommittableOffset(10)}


async def test_after_a_loss_it_says_what_was_lost_and_says_it_once() -> None:
    harness = UserCommitsHarness()
    harness.take(A, B)
    with pytest.raises(CommitFailed, match=r"t-0 \(offset 10\).*no longer assigned") as caught:
        await harness.user_commits.commit(None)
    assert caught.value.offsets == {A: OffsetAndMetadata(10)}
    assert isinstance(caught.value.cause, NotAssigned)
    assert harness.commits.asked == []
    assert await harness.user_commits.commit(None) == {}


async def test_what_is_left_is_stored_all_the_same() -> None:
    harness = UserCommitsHarness()
    harness.tracker.delivered(B, 5)
    harness.take(A)
    with pytest.raises(CommitFailed) as caught:
        await harness.user_commits.commit(None)
    assert caught.value.offsets == {A: OffsetAndMetadata(10)}
    assert harness.commits.asked == [{B: CommittableOffset(5)}]


async def test_explicit_offsets_of_what_was_ours_fail_each_time() -> None:
    harness = UserCommitsHarness()
    harness.take(A)
    wanted = {A: CommittableOffset(7, metadata="x"), B: CommittableOffset(3)}
    for _ in range(2):
        with pytest.raises(CommitFailed, match=r"t-0 \(offset 7\)") as caught:
            await harness.user_commits.commit(wanted)
        assert caught.value.offsets == {A: OffsetAndMetadata(7, "x")}
    assert harness.commits.asked == [{B: CommittableOffset(3)}] * 2


async def test_out_of_the_group_nothing_of_the_groups_is_sent() -> None:
    """Without its epoch a commit could overwrite what the new owner has stored."""
    harness = UserCommitsHarness()
    harness.in_group = False
    with pytest.raises(CommitFailed) as caught:
        await harness.user_commits.commit(None)
    assert caught.value.offsets == {A: OffsetAndMetadata(10)}  # of B nothing is missing
    with pytest.raises(CommitFailed):
        await harness.user_commits.commit({B: CommittableOffset(0)})
    assert harness.commits.asked == []


async def test_a_dead_consumer_says_so_and_what_is_not_stored() -> None:
    harness = UserCommitsHarness()
    fatal = Kip848Error("it is over")
    harness.errors.raise_always(fatal)
    with pytest.raises(CommitFailed, match="it is over") as caught:
        await harness.user_commits.commit(None)
    assert caught.value.cause is fatal
    assert caught.value.offsets[A] == OffsetAndMetadata(10)
    harness.take(A, B)
    harness.tracker.loss_reported([A])
    with pytest.raises(Kip848Error, match="it is over"):
        await harness.user_commits.commit(None)


@pytest.mark.parametrize("how", ["refused", "closed"])
async def test_a_failure_carries_the_offsets_that_were_meant(how: str) -> None:
    harness = UserCommitsHarness()
    if how == "refused":
        harness.commits.refuse[A] = RequestTimedOut("no answer")
    else:
        harness.commits.closed = ConsumerClosed("no answer")
    with pytest.raises(CommitFailed, match="no answer") as caught:
        await harness.user_commits.commit({A: CommittableOffset(4)})
    assert caught.value.offsets == {A: OffsetAndMetadata(4)}


# -- offsets for a transaction -------------------------------------------------------------------


async def test_a_transaction_gets_what_was_handed_out() -> None:
    harness = UserCommitsHarness()
    assert harness.user_commits.for_transaction(None) == {
        A: CommittableOffset(10),
        B: CommittableOffset(0),
    }
    assert harness.user_commits.for_transaction({A: CommittableOffset(3)}) == {
        A: CommittableOffset(3)
    }


async def test_a_transaction_hears_that_the_group_took_a_partition() -> None:
    harness = UserCommitsHarness()
    harness.take(A)
    with pytest.raises(CommitFailed, match="the group took it"):
        harness.user_commits.for_transaction({A: CommittableOffset(10)})


async def test_a_transaction_hears_that_a_partition_was_never_ours() -> None:
    never = TopicPartition("t", 7)
    with pytest.raises(CommitFailed, match="t-7 is not assigned to this consumer") as caught:
        UserCommitsHarness().user_commits.for_transaction({never: CommittableOffset(1)})
    assert caught.value.offsets == {never: OffsetAndMetadata(1)}
