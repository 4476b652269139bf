"""TxnOffsetCommit: offsets that wait for the end of a transaction."""

from __future__ import annotations

import pytest

from kip848_client.core.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from mock_coordinator.core.topics.topic_names import OFFSETS_TOPIC
from tests.unit.mock_coordinator.transactions.transactions_harness import TOPIC, TransactionsHarness

FIRST, SECOND = (TOPIC, 0), (TOPIC, 1)
NONE = (0, ((TOPIC, 0, 0, -1, ""),))
UNSTABLE = (0, ((TOPIC, 0, 88, -1, ""),))


def at(offset: int, metadata: str = "") -> object:
    """The answer to a fetch of the first partition's offset."""
    return (0, ((TOPIC, 0, 0, offset, metadata),))


@pytest.mark.parametrize("commit", [True, False])
def test_offsets_are_pending_until_the_end(commit: bool) -> None:
    broker = TransactionsHarness()
    producer = broker.begin()
    assert broker.txn_commit("x", producer, "g", {FIRST: 5}) == ((TOPIC, 0, 0),)
    assert broker.offsets("g", [FIRST]) == UNSTABLE
    assert broker.offsets("g", [FIRST], stable=False) == NONE
    assert broker.offsets("g", None) == (0, ()), "what is only pending is not listed"
    broker.finish("x", producer, commit=commit)
    assert broker.offsets("g", [FIRST]) == (at(5) if commit else NONE)


def test_a_later_plain_commit_wins() -> None:
    broker = TransactionsHarness()
    producer = broker.begin()
    broker.txn_commit("x", producer, "g", {FIRST: 5, SECOND: 6})
    broker.commit("g", {FIRST: 100})
    assert broker.offsets("g", [FIRST]) == UNSTABLE
    broker.finish("x", producer, commit=True)
    assert broker.offsets("g", [FIRST, SECOND]) == (
        0,
        ((TOPIC, 0, 0, 100, ""), (TOPIC, 1, 0, 6, "")),
    )


def test_the_last_of_several_transactions_wins_by_what_it_wrote_last() -> None:
    broker = TransactionsHarness()
    x, y = broker.begin("x"), broker.begin("y")
    broker.txn_commit("x", x, "g", {FIRST: 1})
    broker.txn_commit("y", y, "g", {FIRST: 2})
    broker.finish("y", y, commit=True)
    assert broker.offsets("g", [FIRST]) == UNSTABLE, "x has yet to decide"
    broker.finish("x", x, commit=True)
    assert broker.offsets("g", [FIRST]) == at(2), "y wrote later, though it ended earlier"


def test_old_producers_must_add_the_group_first() -> None:
    broker = TransactionsHarness()
    producer = broker.begin()
    for version, code in ((0, 48), (3, 48), (4, 120)):
        assert broker.txn_commit("x", producer, "g", {FIRST: 5}, version) == ((TOPIC, 0, code),)
    assert broker.add_offsets("x", producer, "g") == 0
    assert broker.describe("x")[0][7][0][0] == OFFSETS_TOPIC
    assert broker.txn_commit("x", producer, "g", {FIRST: 5}, 0) == ((TOPIC, 0, 0),)


@pytest.mark.parametrize(
    ("change", "code"), [((0, -1), 47), ((0, 1), 47), ((1, 0), 49)], ids=["old", "new", "other"]
)
def test_strangers_commit_nothing(change: tuple[int, int], code: int) -> None:
    broker = TransactionsHarness()
    broker.begin()
    producer = broker.begin()
    stranger = (producer[0] + change[0], producer[1] + change[1])
    assert broker.txn_commit("x", stranger, "g", {FIRST: 5}) == ((TOPIC, 0, code),)


def test_what_does_not_exist_is_said_beside_every_other_error() -> None:
    broker = TransactionsHarness()
    wanted = {FIRST: 5, ("missing", 0): 1, (TOPIC, 7): 1}
    answer = broker.txn_commit("x", (5, 5), "g", wanted)
    assert sorted(answer) == [("missing", 0, 3), (TOPIC, 0, 49), (TOPIC, 7, 3)]
    producer = broker.begin()
    assert broker.txn_commit("x", producer, "", {FIRST: 5}) == ((TOPIC, 0, 24),)
    assert broker.txn_commit("x", producer, "g", {("missing", 0): 5}, 6)[0][2] == 100
    assert broker.txn_commit("x", producer, "g", {FIRST: 5}, metadata="x" * 4097)[0][2] == 12


@pytest.mark.parametrize(("version", "stale", "unknown"), [(5, 22, 22), (6, 113, 69)])
def test_members_are_checked_in_the_words_of_the_version(
    version: int, stale: int, unknown: int
) -> None:
    broker = TransactionsHarness(group_consumer_assignment_interval_ms="0")
    join = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=1000,
        subscribed_topic_names=(TOPIC,),
        topic_partitions=(),
    )
    epoch = broker.harness.ask(join, 1).member_epoch
    producer = broker.begin()

    def code(member: tuple[str, int], group: str = "g") -> int:
        answer = broker.txn_commit("x", producer, group, {FIRST: 5}, version, member=member)
        found: int = answer[0][2]
        return found

    assert code(("m", epoch)) == 0
    assert code(("m", epoch + 1)) == stale
    assert code(("m", -1)) == stale
    assert code(("nobody", epoch)) == 25
    assert code(("", -1)) == 0, "a producer that names no member"
    assert code(("m", epoch), "missing") == unknown
    assert code(("", -1), "new") == 0


def test_deleting_takes_pending_offsets_too() -> None:
    broker = TransactionsHarness()
    producer = broker.begin()
    broker.txn_commit("x", producer, "g", {FIRST: 5, SECOND: 6})
    assert broker.delete_offsets("g", [FIRST]) == (0, ((TOPIC, 0, 0),))
    assert broker.offsets("g", [FIRST]) == NONE
    assert broker.delete_group("g") == 0
    producer = broker.finish("x", producer, commit=True)
    assert broker.offsets("g", [FIRST, SECOND])[1] == ((TOPIC, 0, 0, -1, ""), (TOPIC, 1, 0, -1, ""))
    broker.txn_commit("x", producer, "g", {FIRST: 7})
    broker.harness.broker.delete_topic(TOPIC)
    broker.harness.broker.create_topic(TOPIC)
    broker.finish("x", producer, commit=True)
    assert broker.offsets("g", [FIRST]) == NONE


def test_nothing_expires_under_an_open_transaction() -> None:
    broker = TransactionsHarness(
        offsets_retention_minutes="1",
        offsets_retention_check_interval_ms="1000",
        transaction_max_timeout_ms="900000",
    )
    producer = broker.begin(timeout_ms=900_000)
    broker.commit("g", {FIRST: 1, SECOND: 1})
    broker.txn_commit("x", producer, "g", {FIRST: 5})
    broker.txn_commit("x", producer, "h", {FIRST: 5})
    broker.advance(62_000)
    assert broker.offsets("g", None, stable=False) == at(1), "the other partition's has expired"
    assert broker.delete_group("h") == 0, "still there, though it has no offset"
    broker.finish("x", producer, commit=True)
    assert broker.offsets("g", None) == at(5, "")
