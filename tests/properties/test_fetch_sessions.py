"""Both halves of a fetch session, thousands of requests long: what our half thinks that the broker
knows is what the bundled broker knows, whatever gets lost, closed, throttled or created again.

Requests and answers go through the translation to the wire. Positions follow the answers, and in
the end everything has been read.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from kip848_client.core.fetch._batch_headers import read_headers
from kip848_client.core.fetch._model import FetchAnswer, FetchIntent, PartitionAnswer, Wanted
from kip848_client.core.fetch._sessions import AnswerEffect, Difference, FetchSession
from kip848_client.core.fetch._wire import fetch_answer, fetch_request
from kip848_client.core.types import TopicId, TopicIdPartition
from kip848_client.core.wire.messages.fetch import FetchResponse
from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.fetching.sessions import FetchSession as BrokerSession
from tests.unit.mock_coordinator.broker_harness import BrokerHarness

STEPS = 400
PARTITIONS = 3
STRANGER = TopicId(b"s" * 16)
Known = Mapping[TopicIdPartition, Wanted]


class Pair:
    """A client's half of a session and a broker's, and what comes between them."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(f"fetch-sessions-{seed}")
        self.version = rng.randint(13, 17)
        # with 8 there is one session a shard: others may take the room
        self.slots = rng.choice([8, 800])
        self.harness = BrokerHarness(
            {"a": PARTITIONS, "b": PARTITIONS},
            profile=rng.choice(["4.0", "4.2", "4.4"]),
            max_incremental_fetch_session_cache_slots=str(self.slots),
        )
        self.now_ms = 0
        self.session = FetchSession(0)
        self.positions: dict[TopicIdPartition, int] = {}
        self.unwanted: set[TopicIdPartition] = set()
        self.reached: set[str] = set()
        self.unheard = 0
        """How many sessions were opened with an answer that was lost."""
        self.meddled = 0
        """The session that somebody else went on with."""
        self.follow_topics()

    # -- the world -------------------------------------------------------------------------------

    def follow_topics(self) -> None:
        """Begin anew with topics that were created again."""
        topics = self.harness.broker.core.broker.catalog.topics
        keys = [
            (TopicId(topics[name].topic_id), number)
            for name in ("a", "b")
            for number in range(PARTITIONS)
        ]
        self.positions = {key: self.positions.get(key, 0) for key in keys}

    def ends(self) -> dict[TopicIdPartition, int]:
        broker = self.harness.broker.core.broker
        found: dict[TopicIdPartition, int] = {}
        for key in self.positions:
            topic = broker.catalog.topic_by_id(key[0])
            log = None if topic is None else broker.logs.of(topic, key[1])
            if log is not None:
                found[key] = log.high_watermark
        return found

    def wanted(self) -> dict[TopicIdPartition, Wanted]:
        keys = [key for key in self.positions if key not in self.unwanted]
        self.rng.shuffle(keys)
        return {key: Wanted(*key, self.positions[key], 0, -1, 400) for key in keys}

    def broker_session(self, session_id: int) -> BrokerSession | None:
        return self.harness.broker.core._services[None].fetches.sessions.get(session_id)

    def ask(self, sent: Difference) -> FetchAnswer:
        """What the broker answers."""
        intent = FetchIntent(*sent, 0, 1, 1000, read_committed=False, rack="")
        response = self.harness.ask(fetch_request(intent), self.version)
        assert isinstance(response, FetchResponse)
        return fetch_answer(response)

    # -- what is compared ------------------------------------------------------------------------

    def compare(self) -> None:
        """If the broker's session is at an epoch that we know of, it has what we think."""
        ours = self.session.snapshot()
        theirs = self.broker_session(ours.session_id)
        if ours.known is None or theirs is None or ours.session_id == self.meddled:
            return
        known = {
            (key.topic_id, key.partition): (each.fetch_offset, each.max_bytes, each.leader_epoch)
            for key, each in theirs.wanted.items()
        }
        if theirs.epoch == ours.epoch:
            assert known == facts(ours.known)
        elif ours.asked is not None and theirs.epoch == ours.epoch + 1:
            self.reached.add("taken and not answered")
            assert known == facts(ours.asked)

    def use(self, sent: Difference, answer: FetchAnswer) -> AnswerEffect:
        effect = self.session.on_answer(self.now_ms, answer)
        self.compare()
        if effect.usable:
            for part in answer.partitions:
                self.read(part, effect.asked)
        if sent.session_epoch == -1:
            self.reached.add("without a session")
        return effect

    def read(self, part: PartitionAnswer, asked: Known) -> None:
        offset = asked[part.key].offset
        if part.error_code or self.positions.get(part.key) != offset:
            return
        headers = read_headers(part.records, offset, -1)
        assert headers.garbled is None
        if headers.batches:
            assert headers.batches[0].base_offset <= offset
        self.positions[part.key] = headers.next_offset

    # -- steps -----------------------------------------------------------------------------------

    def step(self) -> None:
        steps: dict[Callable[[], None], float] = {
            self.fetch: 12,
            self.write: 5,
            self.choose: 4,
            self.seek: 1,
            self.wait: 1,
            self.lose_request: 0.5,
            self.lose_answer: 0.5,
            self.send_nothing: 0.5,
            self.evict: 0.4,
            self.get_out_of_step: 0.3,
            self.stop_broker: 0.2,
            self.take_the_room: 0.4,
            self.throttle: 0.6,
            self.spoil: 0.3,
            self.refuse: 0.3,
            self.create_again: 0.2,
        }
        (chosen,) = self.rng.choices(list(steps), list(steps.values()))
        chosen()
        self.compare()

    def plan(self) -> Difference | None:
        wanted = self.wanted()
        sent = self.session.plan(self.now_ms, wanted)
        if sent is None:
            self.reached.add("nothing wanted")
        else:
            assert self.session.snapshot().asked == wanted
        self.compare()
        return sent

    def fetch(self) -> None:
        sent = self.plan()
        if sent is not None:
            self.use(sent, self.ask(sent))

    def write(self) -> None:
        name, number = self.rng.choice("ab"), self.rng.randrange(PARTITIONS)
        values = [b"v" * self.rng.choice([1, 300])] * self.rng.choice([1, 4])
        self.harness.produce_bytes(name, self.harness.batch(*values), partition=number)

    def choose(self) -> None:
        share = self.rng.choice([0.0, 0.0, 0.3, 0.7, 1.0])
        self.unwanted = {key for key in self.positions if self.rng.random() < share}

    def seek(self) -> None:
        key = self.rng.choice(list(self.positions))
        self.positions[key] = self.rng.randint(0, self.ends().get(key, 0))

    def wait(self) -> None:
        self.now_ms += self.rng.choice([10, 1000, 40_000])

    def lose_request(self) -> None:
        if self.plan() is not None:
            self.session.lost()

    def lose_answer(self) -> None:
        sent = self.plan()
        if sent is not None:
            answer = self.ask(sent)
            self.compare()
            self.session.lost()
            self.unheard += sent.session_epoch == 0 and answer.session_id > 0

    def send_nothing(self) -> None:
        before = self.session.snapshot()
        if self.plan() is not None:
            self.session.lost(sent=False)
            assert self.session.snapshot() == before

    def evict(self) -> None:
        fetches = self.harness.broker.core._services[None].fetches
        for session_id in fetches.sessions.ids:
            fetches.sessions.close(session_id)

    def get_out_of_step(self) -> None:
        session = self.broker_session(self.session.snapshot().session_id)
        if session is not None:
            self.reached.add("out of step")
            session.advance()
            self.meddled = session.session_id

    def stop_broker(self) -> None:
        self.harness.broker.core._services[None].fetches.forget_sessions()

    def take_the_room(self) -> None:
        """Eight others open sessions, as far as there is room."""
        if self.slots == 8:
            key = next(iter(self.positions))
            for _ in range(8):
                self.ask(Difference(0, 0, (Wanted(*key, 0, -1, -1, 1),), ()))

    def throttle(self) -> None:
        """A broker that throttles takes the request, opens no session, and tells nothing."""
        sent = self.plan()
        if sent is None:
            return
        session_id = 0
        if sent.session_epoch > 0:
            session_id = self.ask(sent).session_id
        else:
            self.ask(sent._replace(session_epoch=-1))
        assert self.use(sent, FetchAnswer(session_id=session_id, throttle_time_ms=100)).usable

    def spoil(self) -> None:
        """An answer that no broker gives."""
        sent = self.plan()
        if sent is None:
            return
        answer = self.ask(sent)
        parts = answer.partitions
        if sent.session_epoch <= 0 and parts:
            parts = parts[1:]
        else:
            parts = (*parts, PartitionAnswer(STRANGER, 0))
        effect = self.use(sent, replace(answer, partitions=parts))
        if not answer.error_code:
            self.reached.add("a breach")
            assert not effect.usable
            assert effect.rest

    def refuse(self) -> None:
        sent = self.plan()
        if sent is not None:
            code = self.rng.choice([-1, 4242, int(ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)])
            assert self.use(sent, FetchAnswer(error_code=code)).rest

    def create_again(self) -> None:
        self.harness.broker.delete_topic("b")
        if self.rng.random() < 0.5:
            self.fetch()
        self.harness.broker.create_topic("b", PARTITIONS)
        if self.rng.random() < 0.5:
            self.fetch()
        self.follow_topics()

    def drain(self) -> None:
        """Nothing goes wrong any more, and there is room for a session."""
        self.unwanted.clear()
        if self.slots == 8:
            self.evict()
        self.now_ms += 30_000
        for _ in range(2000):
            if self.positions == self.ends():
                break
            self.fetch()
        assert self.positions == self.ends()
        for _ in range(3):
            self.fetch()
        sent = self.plan()
        assert sent is not None
        assert sent.session_epoch > 0, "no session though there is room"
        assert (sent.add, sent.forget) == ((), ())
        assert self.use(sent, self.ask(sent)).usable


def facts(known: Known) -> dict[TopicIdPartition, tuple[int, int, int]]:
    return {key: (each.offset, each.max_bytes, each.leader_epoch) for key, each in known.items()}


@pytest.mark.parametrize("chunk", range(5))
def test_both_halves_agree(chunk: int) -> None:
    for seed in range(chunk * 5, chunk * 5 + 5):
        pair = Pair(seed)
        for _ in range(STEPS):
            pair.step()
        pair.drain()
        if pair.slots > 8:  # else there are those of others
            sessions = pair.harness.broker.core._services[None].fetches.sessions
            assert len(sessions) <= 1 + pair.unheard, "each session that we left is closed"


def test_the_steps_reach_what_is_rare() -> None:
    reached: set[str] = set()
    for seed in range(6):
        pair = Pair(seed)
        for _ in range(STEPS):
            pair.step()
        reached |= pair.reached
    assert reached == {
        "a breach",
        "nothing wanted",
        "out of step",
        "taken and not answered",
        "without a session",
    }
