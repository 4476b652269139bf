"""Who waits for the partitions of a topic, and until when."""

from __future__ import annotations

from kip848_client.core.produce._topic_waiters import TopicWaiters


def test_all_that_wait_for_a_topic_are_taken_at_once() -> None:
    waiters = TopicWaiters()
    for ticket, topic in ((1, "t"), (2, "u"), (3, "t")):
        waiters.add(0, ticket, topic, 100)
    assert list(waiters.topics) == ["t", "u"]
    assert list(waiters.take("t")) == [1, 3]
    assert list(waiters.topics) == ["u"]
    assert not waiters.take("t")


def test_the_first_deadline_is_due_whatever_the_order_was() -> None:
    waiters = TopicWaiters()
    for ticket, deadline_ms in ((1, 300), (2, 100), (3, 200)):
        waiters.add(0, ticket, "t", deadline_ms)
    assert waiters.due_ms() == 100
    assert list(waiters.take_overdue(99)) == []
    assert list(waiters.take_overdue(200)) == [(2, "t"), (3, "t")]
    assert waiters.due_ms() == 300


def test_who_waits_no_longer_is_not_due() -> None:
    waiters = TopicWaiters()
    for ticket, deadline_ms in ((1, 100), (2, 200), (3, 300)):
        waiters.add(0, ticket, f"t{ticket}", deadline_ms)
    waiters.forget(1)
    waiters.forget(1)
    waiters.take("t2")
    assert waiters.due_ms() == 300
    assert list(waiters.topics) == ["t3"]
    waiters.forget(3)
    assert waiters.due_ms() is None
    assert list(waiters.take_overdue(1_000)) == []
