"""One broker's fetch session (KIP-227), against answers written by hand."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from kip848_client.core.fetch._model import FetchAnswer, PartitionAnswer, Wanted
from kip848_client.core.fetch._sessions import AnswerEffect, Difference, FetchSession
from kip848_client.core.types import ZERO_TOPIC_ID, TopicId, TopicIdPartition
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import LocalProtocolError

T = TopicId(b"t" * 16)
U = TopicId(b"u" * 16)
ID = 700
UNKNOWN = ErrorCode.UNKNOWN_SERVER_ERROR


def want(partition: int, offset: int = 0, topic_id: TopicId = T, epoch: int = 5) -> Wanted:
    return Wanted(topic_id, partition, offset, epoch, -1, 1000)


class Client:
    """A session with its clock, and what it wants."""

    def __init__(self) -> None:
        self.session = FetchSession(3)
        self.now_ms = 0
        self.sent: Difference | None = None

    def plan(self, *wanted: Wanted) -> Difference:
        self.sent = self.session.plan(self.now_ms, {each.key: each for each in wanted})
        assert self.sent is not None
        return self.sent

    def took(
        self,
        session_id: int = ID,
        *keys: TopicIdPartition,
        code: int = 0,
        throttle_ms: int = 0,
    ) -> AnswerEffect:
        answer = FetchAnswer(
            error_code=code,
            session_id=session_id,
            throttle_time_ms=throttle_ms,
            partitions=tuple(PartitionAnswer(*key) for key in keys),
        )
        return self.session.on_answer(self.now_ms, answer)

    def opened(self, *wanted: Wanted, session_id: int = ID) -> AnswerEffect:
        """Send everything and hear of everything."""
        self.plan(*wanted)
        return self.took(session_id, *(each.key for each in wanted))

    def known(self) -> set[Wanted] | None:
        known = self.session.snapshot().known
        return None if known is None else set(known.values())


@pytest.fixture
def client() -> Client:
    return Client()


def ids(difference: Difference | None) -> tuple[int, int]:
    assert difference is not None
    return (difference.session_id, difference.session_epoch)


class TestOpening:
    def test_the_first_request_names_everything_in_order(self, client: Client) -> None:
        wanted = (want(2), want(0, 5), want(1, 1, U))
        assert client.plan(*wanted) == Difference(0, 0, wanted, ())
        effect = client.took(ID, *(each.key for each in wanted))
        assert effect == AnswerEffect(usable=True, asked={each.key: each for each in wanted})

    def test_then_only_what_changed(self, client: Client) -> None:
        client.opened(want(0), want(1), want(2))
        difference = client.plan(want(3), want(2, 9), want(0))
        assert difference == Difference(ID, 1, (want(3), want(2, 9)), ((T, 1),))
        assert client.took(ID, (T, 2)).usable
        assert client.known() == {want(3), want(2, 9), want(0)}

    @pytest.mark.parametrize(
        "changed",
        [
            want(0)._replace(leader_epoch=6),
            want(0)._replace(last_epoch=2),
            want(0)._replace(max_bytes=9),
        ],
    )
    def test_any_field_that_changed_is_told(self, client: Client, changed: Wanted) -> None:
        client.opened(want(0))
        assert client.plan(changed).add == (changed,)

    def test_nothing_new_is_a_request_all_the_same(self, client: Client) -> None:
        """It waits at the broker for records."""
        client.opened(want(0), want(1))
        assert client.plan(want(1), want(0)) == Difference(ID, 1, (), ())

    def test_epochs_count_up(self, client: Client) -> None:
        client.opened(want(0))
        for epoch in range(1, 5):
            assert ids(client.plan(want(0, epoch))) == (ID, epoch)
            assert client.took(ID).usable

    def test_after_the_last_epoch_comes_1(self, client: Client) -> None:
        client.opened(want(0))
        client.session._epoch = 2**31 - 1  # two thousand million requests away
        assert ids(client.plan(want(0))) == (ID, 2**31 - 1)
        client.took(ID)
        assert ids(client.plan(want(0))) == (ID, 1)

    def test_one_session_for_a_thousand_fetches(self, client: Client) -> None:
        """platformatic #315, sarama #1644: opening one each time fills the broker's cache."""
        client.opened(want(0))
        assert all(ids(client.plan(want(0, n)))[1] == n and client.took() for n in range(1, 1000))


class TestForgetting:
    def test_what_is_wanted_no_more_is_forgotten_once(self, client: Client) -> None:
        """platformatic #321: its data would come with every answer."""
        client.opened(want(0), want(1))
        assert client.plan(want(0)).forget == ((T, 1),)
        client.took()
        assert client.plan(want(0)).forget == ()

    def test_a_session_is_never_emptied(self, client: Client) -> None:
        """KAFKA-17182: the broker would close it. The request is held back."""
        client.opened(want(0))
        assert client.session.plan(0, {}) is None
        assert client.plan(want(1)) == Difference(ID, 1, (want(1),), ((T, 0),))

    def test_an_unopened_one_neither(self, client: Client) -> None:
        assert client.session.plan(0, {}) is None
        assert ids(client.plan(want(0))) == (0, 0)

    def test_a_created_again_topic_goes_by_both_ids(self, client: Client) -> None:
        client.opened(want(0, 9))
        new = want(0, 0, U)
        assert client.plan(new) == Difference(ID, 1, (new,), ((T, 0),))

    def test_without_an_id_nothing_is_sent(self, client: Client) -> None:
        """franz-go #535, librdkafka #4806: the zero id fails the request, or names nothing."""
        zero = want(0, 0, ZERO_TOPIC_ID)
        with pytest.raises(LocalProtocolError, match="topic id"):
            client.plan(want(1), zero)
        assert ids(client.plan(want(1))) == (0, 0)

    def test_an_offset_that_moved_is_told(self, client: Client) -> None:
        """kafka-python #2575."""
        client.opened(want(0, 5))
        assert client.plan(want(0, 8)).add == (want(0, 8),)
        client.took(ID, (T, 0))
        assert client.plan(want(0, 5)).add == (want(0, 5),)


class TestBrokerWithoutRoom:
    def test_it_is_asked_again_now_and_then(self, client: Client) -> None:
        client.opened(want(0), want(1), session_id=0)
        for now_ms in (1, 15_000, 29_999):
            client.now_ms = now_ms
            assert client.plan(want(0), want(1)) == Difference(0, -1, (want(0), want(1)), ())
            assert client.took(0, (T, 0), (T, 1)).usable
        client.now_ms = 30_000
        assert ids(client.plan(want(0))) == (0, 0)
        client.took(0, (T, 0))
        assert ids(client.plan(want(0))) == (0, -1)
        client.took(0, (T, 0))
        client.now_ms = 60_000
        client.opened(want(0))
        assert ids(client.plan(want(0))) == (ID, 1)

    def test_an_id_in_a_sessionless_answer_means_nothing(self, client: Client) -> None:
        client.opened(want(0), session_id=0)
        client.plan(want(0))
        assert client.took(9, (T, 0)).usable
        assert ids(client.plan(want(0))) == (0, -1)

    def test_a_lost_answer_changes_nothing(self, client: Client) -> None:
        client.opened(want(0), session_id=0)
        client.plan(want(0))
        client.session.lost()
        assert ids(client.plan(want(0))) == (0, -1)


class TestSessionsThatEnd:
    def test_id_0_says_that_the_session_is_over(self, client: Client) -> None:
        client.opened(want(0), want(1))
        client.plan(want(0, 4), want(1))
        effect = client.took(0, (T, 0))
        assert effect.usable
        assert effect.asked == {(T, 0): want(0, 4), (T, 1): want(1)}
        assert client.plan(want(0, 5)) == Difference(0, 0, (want(0, 5),), ())

    def test_a_session_that_the_broker_does_not_know(self, client: Client) -> None:
        """Evicted, or the broker was restarted."""
        client.opened(want(0), want(1))
        client.plan(want(1))
        effect = client.took(0, code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        assert effect == AnswerEffect(usable=False, failures=1)
        assert client.plan(want(0), want(1)) == Difference(0, 0, (want(0), want(1)), ())

    @pytest.mark.parametrize("told", [0, ID])
    def test_an_epoch_that_the_broker_does_not_expect(self, client: Client, told: int) -> None:
        """redpanda #27749. The id in an error answer means nothing."""
        client.opened(want(0))
        client.plan(want(0))
        effect = client.took(told, code=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        assert effect == AnswerEffect(usable=False, failures=1)
        assert client.plan(want(0)) == Difference(ID, 0, (want(0),), ())

    @pytest.mark.parametrize(
        "code", [ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH]
    )
    def test_twice_in_a_row_rests(self, client: Client, code: ErrorCode) -> None:
        client.opened(want(0))
        effects = []
        for _ in range(3):
            client.plan(want(0))
            effects.append(client.took(0, code=code))
        assert [each.rest for each in effects] == [False, True, True]
        assert [each.failures for each in effects] == [1, 2, 3]
        assert all(each.warning is None for each in effects)
        client.opened(want(0))
        client.plan(want(0))
        assert not client.took(0, code=code).rest

    def test_a_session_of_the_other_kind_of_topics(self, client: Client) -> None:
        client.opened(want(0))
        client.plan(want(0))
        effect = client.took(0, code=ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        assert (effect.usable, effect.rest, effect.learn_leaders) == (False, True, True)
        assert ids(client.plan(want(0))) == (ID, 0)

    def test_what_a_broker_cannot_close_is_not_closed_again(self, client: Client) -> None:
        """Kafka fails at session ids that it would not give, each time: id 2^31-1 is one."""
        client.opened(want(0), session_id=2**31 - 1)
        client.plan(want(0))
        client.took(0, code=ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        assert ids(client.plan(want(0))) == (2**31 - 1, 0)
        client.took(0, code=UNKNOWN)
        assert ids(client.plan(want(0))) == (0, 0)

    def test_any_other_error_rests_and_is_told_once(self, client: Client) -> None:
        """An error that nobody knows must not become a storm, of requests or of warnings."""
        client.opened(want(0))
        warnings: list[str | None] = []
        for code in (UNKNOWN, UNKNOWN, 4242, UNKNOWN, ErrorCode.INVALID_REQUEST):
            client.plan(want(0))
            effect = client.took(ID, code=code)
            assert (effect.usable, effect.rest) == (False, True)
            assert ids(client.plan(want(0))) == (ID if not warnings else 0, 0)
            client.session.lost()
            warnings.append(effect.warning)
        assert [each is not None for each in warnings] == [True, False, True, False, True]
        assert warnings[0] is not None
        assert "broker 3" in warnings[0]
        assert "UNKNOWN_SERVER_ERROR" in warnings[0]
        client.opened(want(0))
        client.plan(want(0))
        assert client.took(0, code=-1).warning is not None


class TestLostAnswers:
    def test_the_epoch_is_not_knowable(self, client: Client) -> None:
        """The broker moves on when it takes a request: what it took nobody can tell."""
        client.opened(want(0), want(1))
        client.plan(want(0, 7))
        client.session.lost()
        assert client.known() is None
        assert client.plan(want(0, 7)) == Difference(ID, 0, (want(0, 7),), ())
        client.took(ID + 1, (T, 0))
        assert ids(client.plan(want(0, 7))) == (ID + 1, 1)

    def test_a_lost_first_answer(self, client: Client) -> None:
        client.plan(want(0))
        client.session.lost()
        assert ids(client.plan(want(0))) == (0, 0)

    def test_lost_again_and_again(self, client: Client) -> None:
        client.opened(want(0))
        for _ in range(3):
            client.plan(want(0))
            client.session.lost()
            assert client.session.snapshot().session_id == ID

    def test_what_was_never_sent_changes_nothing(self, client: Client) -> None:
        client.opened(want(0), want(1))
        client.plan(want(0, 7))
        client.session.lost(sent=False)
        assert client.known() == {want(0), want(1)}
        assert client.plan(want(1)) == Difference(ID, 1, (), ((T, 0),))


class TestThrottled:
    def test_a_first_request_gets_nothing_and_no_session(self, client: Client) -> None:
        """KIP-219: that is no breach, and says nothing of the room that the broker has."""
        client.plan(want(0))
        assert client.took(0, throttle_ms=500).usable
        assert client.plan(want(0)) == Difference(0, 0, (want(0),), ())

    def test_one_that_reopens_has_closed_the_old_session(self, client: Client) -> None:
        client.opened(want(0))
        client.plan(want(0))
        client.session.lost()
        client.plan(want(0))
        assert client.took(0, throttle_ms=500).usable
        assert ids(client.plan(want(0))) == (0, 0)

    def test_an_incremental_one_counts(self, client: Client) -> None:
        client.opened(want(0), want(1))
        client.plan(want(0, 3), want(2))
        assert client.took(ID, throttle_ms=500).usable
        assert client.plan(want(0, 3), want(2)) == Difference(ID, 2, (), ())

    def test_without_a_session(self, client: Client) -> None:
        client.opened(want(0), session_id=0)
        client.plan(want(0))
        assert client.took(0, throttle_ms=500).usable
        assert ids(client.plan(want(0))) == (0, -1)


class TestBreaches:
    def broken(self, effect: AnswerEffect, says: str) -> None:
        assert (effect.usable, effect.rest, effect.asked) == (False, True, {})
        assert effect.warning is not None
        assert says in effect.warning

    def test_a_partition_that_nobody_asked_for(self, client: Client) -> None:
        client.opened(want(0), want(1))
        client.plan(want(0))
        self.broken(client.took(ID, (T, 1)), "partition 1 of topic dHR0")
        assert ids(client.plan(want(0))) == (ID, 0)

    @pytest.mark.parametrize("keys", [[(T, 0), (U, 0)], [(T, 0)], [], [(T, 0), (T, 1), (T, 2)]])
    def test_a_full_answer_of_other_partitions(
        self, client: Client, keys: Iterable[TopicIdPartition]
    ) -> None:
        client.plan(want(0), want(1))
        self.broken(client.took(ID, *keys), "")
        # the session that this answer opened is closed, not left to its two minutes
        assert client.plan(want(0)) == Difference(ID, 0, (want(0),), ())

    def test_a_sessionless_answer_of_fewer_partitions(self, client: Client) -> None:
        client.opened(want(0), session_id=0)
        client.plan(want(0), want(1))
        self.broken(client.took(0, (T, 0)), "2 partitions were asked for, 1 answered")
        assert ids(client.plan(want(0))) == (0, -1)

    def test_throttled_and_yet_something(self, client: Client) -> None:
        client.plan(want(0), want(1))
        self.broken(client.took(ID, (T, 0), throttle_ms=9), "1 answered")

    def test_a_partition_twice(self, client: Client) -> None:
        client.opened(want(0), want(1))
        client.plan(want(0), want(1))
        self.broken(client.took(ID, (T, 0), (T, 0)), "twice")

    def test_another_session(self, client: Client) -> None:
        client.opened(want(0))
        client.plan(want(0))
        self.broken(client.took(ID + 1), f"session {ID + 1} answered")
        assert ids(client.plan(want(0))) == (ID, 0)

    def test_an_error_comes_before_all_that(self, client: Client) -> None:
        client.plan(want(0))
        effect = client.took(0, (T, 7), code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        assert effect == AnswerEffect(usable=False, failures=1)


class TestClosing:
    def test_an_open_session_is_named(self, client: Client) -> None:
        client.opened(want(0))
        client.plan(want(0))
        assert client.session.close() == ID
        assert client.session.close() is None

    def test_one_in_doubt_too(self, client: Client) -> None:
        client.opened(want(0))
        client.plan(want(0))
        client.session.lost()
        assert client.session.close() == ID

    def test_none(self, client: Client) -> None:
        client.plan(want(0))
        assert client.session.close() is None
        assert ids(client.plan(want(0))) == (0, 0)


class TestIllegal:
    def test_a_second_request(self, client: Client) -> None:
        client.opened(want(0))
        client.plan(want(0, 1))
        before = client.session.snapshot()
        with pytest.raises(LocalProtocolError, match="broker 3"):
            client.plan(want(0, 2))
        assert client.session.snapshot() == before

    def test_an_answer_to_nothing(self, client: Client) -> None:
        client.opened(want(0))
        before = client.session.snapshot()
        with pytest.raises(LocalProtocolError, match="broker 3"):
            client.took()
        with pytest.raises(LocalProtocolError, match="broker 3"):
            client.session.lost()
        assert client.session.snapshot() == before


class TestSnapshot:
    def test_before_and_after_the_broker_takes_it(self, client: Client) -> None:
        client.opened(want(0))
        client.plan(want(1))
        snapshot = client.session.snapshot()
        assert (snapshot.session_id, snapshot.epoch) == (ID, 1)
        assert snapshot.known == {(T, 0): want(0)}
        assert snapshot.asked == {(T, 1): want(1)}
        client.took(ID)
        snapshot = client.session.snapshot()
        assert (snapshot.epoch, snapshot.asked) == (2, None)

    def test_what_was_wanted_may_change_after_plan(self, client: Client) -> None:
        wanted = {(T, 0): want(0)}
        client.session.plan(0, wanted)
        wanted.clear()
        assert client.session.snapshot().asked == {(T, 0): want(0)}
