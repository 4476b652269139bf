"""Which records the application is busy with, by holder."""

from __future__ import annotations

from kip848_client import TopicPartition
from kip848_client.core.offsets import CommittableOffset, InFlight

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def at(offset: int, leader_epoch: int = -1) -> CommittableOffset:
    return CommittableOffset(offset, leader_epoch)


def test_what_is_done_ends_before_the_oldest_record_that_somebody_holds() -> None:
    outs = InFlight()
    outs.of("one").add(A, at(3))
    outs.of("two").add(A, at(4))
    outs.of("two").add(B, at(7))
    assert outs.open() == {A: at(3), B: at(7)}
    assert outs.is_busy([A])
    outs.mark_done("one")
    assert outs.open() == {A: at(4), B: at(7)}
    outs.mark_done("two")
    outs.mark_done("nobody")
    assert outs.open() == {}
    assert not outs.is_busy([A, B])


def test_a_record_stays_open_when_another_is_got_without_coming_back() -> None:
    outs = InFlight()
    out = outs.of("one")
    for offset in (3, 4):
        out.add(A, at(offset))
    assert outs.open() == {A: at(3)}


def test_a_partition_that_is_gone_is_held_by_nobody() -> None:
    outs = InFlight()
    out = outs.of("one")
    out.add(A, at(3))
    out.add(B, at(1))
    outs.drop(A)
    assert outs.open() == {B: at(1)}


def test_a_commit_by_hand_says_what_is_done_of_what_is_held() -> None:
    outs = InFlight()
    outs.of("one").add(A, at(3))
    delivered = {A: at(10)}
    outs.processed({A: at(5), B: at(5)}, delivered)
    assert outs.open() == {A: at(5)}
    outs.processed({A: at(4)}, delivered)  # less than before takes nothing back
    outs.processed({A: at(11)}, delivered)  # more than it got: a guess
    assert outs.open() == {A: at(5)}
    outs.processed({A: at(10)}, delivered)
    assert outs.open() == {A: at(10)}  # still the holder's, who has not come back


def test_idle_holders_are_forgotten() -> None:
    outs = InFlight()
    kept, busy = outs.of("kept"), outs.of("busy")
    busy.add(A, at(3))
    gone = outs.of("gone")
    outs.forget_idle(lambda holder: holder == "kept")
    assert outs.of("kept") is kept
    assert outs.of("busy") is busy
    assert outs.of("gone") is not gone
    assert list(outs.holders()) == ["busy"]
