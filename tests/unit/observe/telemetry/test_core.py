"""When a client asks what brokers want to know of it, and when it tells them."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from kip848_client.error_codes import ErrorCode
from kip848_client.observe.core.telemetry._core import State
from kip848_client.observe.core.telemetry._model import (
    NO_INSTANCE,
    Begun,
    CloseRequested,
    Command,
    Event,
    Lost,
    Push,
    PushAnswered,
    Subscribe,
    Subscription,
    SubscriptionAnswered,
    Timer,
    Unserved,
    Warn,
)
from kip848_client.runtime.telemetry import RULES, Reaction, TelemetryCore
from tests.support.examples import examples

ME = bytes(range(16))
WANTED = Subscription(7, ("org.apache.kafka.",), 60_000, 1_000, delta=True)
NOTHING = replace(WANTED, requested=())
OK = PushAnswered(0, 100)
NEW = 4242
"""An error code of a Kafka to come."""


def answer(subscription: Subscription = WANTED, error: int = 0) -> SubscriptionAnswered:
    return SubscriptionAnswered(error, ME, subscription)


class World:
    """A core, and the time."""

    def __init__(self, *codecs: int, subscription: Subscription | None = None) -> None:
        self.now_ms = 1_000
        self.spread = 1.0
        self.core = TelemetryCore(lambda ms: round(ms * self.spread), codecs)
        if subscription is not None:
            assert self.post(Begun()) == [Subscribe(NO_INSTANCE)]
            assert self.post(answer(subscription)) == []

    def post(self, event: Event) -> list[Command]:
        return self.core.step(self.now_ms, event)

    def wait(self) -> tuple[int, list[Command]]:
        """How long the core waits, and what it does then."""
        assert self.core.due_ms is not None
        passed_ms = self.core.due_ms - self.now_ms
        if passed_ms > 0:
            self.now_ms = self.core.due_ms - 1
            assert self.post(Timer()) == []
            self.now_ms += 1
        return passed_ms, self.post(Timer())

    def pushed(self) -> Push:
        """What is pushed when it is time."""
        _, (command,) = self.wait()
        assert isinstance(command, Push)
        return command


@pytest.mark.parametrize("spread", [0.5, 1.0, 1.5])
def test_the_first_push_comes_when_not_all_clients_come_and_the_others_by_the_interval(
    spread: float,
) -> None:
    world = World()
    world.spread = spread
    assert world.post(Begun()) == [Subscribe(NO_INSTANCE)]
    assert world.post(answer()) == []
    push = Push(ME, WANTED, 0, 1_000, terminating=False)
    assert world.wait() == (60_000 * spread, [push])
    for _ in range(3):
        world.now_ms += 700  # a broker counts from what it has got: after the question
        assert world.post(OK) == []
        assert world.wait() == (60_000, [push])


def test_who_is_asked_for_nothing_asks_again_after_the_interval() -> None:
    world = World(subscription=NOTHING)
    assert world.core.instance_id == ME
    assert world.wait() == (60_000, [Subscribe(ME)])
    assert world.post(SubscriptionAnswered(0, NO_INSTANCE, WANTED)) == []
    assert world.core.instance_id == ME, "a broker names it only where it gave it"
    assert world.pushed().instance_id == ME


def test_what_cannot_be_meant_is_kafkas_default() -> None:
    world = World(subscription=replace(WANTED, push_interval_ms=0, max_bytes=-1))
    passed_ms, (push,) = world.wait()
    assert passed_ms == 300_000
    assert isinstance(push, Push)
    assert push.max_bytes == 1_048_576


@pytest.mark.parametrize(
    ("accepted", "ours", "used"),
    [
        ((), (0, 1, 4), 0),
        ((4, 3, 1, 2), (0, 1), 1),
        ((4, 3, 1, 2), (0, 1, 2, 3, 4), 4),
        ((3, 9), (0, 1), 0),
    ],
)
def test_the_best_compression_that_both_have_is_used(
    accepted: tuple[int, ...], ours: tuple[int, ...], used: int
) -> None:
    world = World(*ours, subscription=replace(WANTED, compression_types=accepted))
    assert world.pushed().compression_type == used


def test_a_compression_that_was_refused_is_not_used_again() -> None:
    subscription = replace(WANTED, compression_types=(4, 1))
    world = World(0, 1, 4, subscription=subscription)
    assert world.pushed().compression_type == 4
    refused = PushAnswered(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, 100)
    assert world.post(refused) == [Subscribe(ME)]
    world.post(answer(subscription))
    assert world.pushed().compression_type == 1


def test_a_subscription_that_is_not_known_any_more_is_asked_for_at_once() -> None:
    world = World(subscription=WANTED)
    world.pushed()
    assert world.post(PushAnswered(ErrorCode.UNKNOWN_SUBSCRIPTION_ID, 100)) == [Subscribe(ME)]
    other = replace(WANTED, subscription_id=8, push_interval_ms=5_000)
    assert world.post(answer(other)) == []
    assert world.pushed().subscription == other


@pytest.mark.parametrize("code", [code for code, what in RULES.items() if what is Reaction.LATER])
def test_who_is_too_early_asks_after_the_interval(code: ErrorCode) -> None:
    world = World(subscription=WANTED)
    world.pushed()
    assert world.post(PushAnswered(code, 100)) == []
    assert world.wait() == (60_000, [Subscribe(ME)])


def test_what_was_too_large_is_halved_until_brokers_name_another_limit() -> None:
    world = World(subscription=WANTED)
    world.pushed()
    assert world.post(PushAnswered(ErrorCode.TELEMETRY_TOO_LARGE, 900)) == []
    assert world.wait() == (60_000, [Subscribe(ME)])
    world.post(answer())
    assert world.pushed().max_bytes == 450
    world.post(OK)
    assert world.pushed().max_bytes == 450
    world.post(PushAnswered(ErrorCode.UNKNOWN_SUBSCRIPTION_ID, 100))
    world.post(answer(replace(WANTED, max_bytes=2_000)))
    assert world.pushed().max_bytes == 2_000


@pytest.mark.parametrize(
    "code",
    [
        *(code for code, what in RULES.items() if what is Reaction.STOP),
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        NEW,
    ],
)
@pytest.mark.parametrize("with_subscription", [False, True])
def test_what_only_a_change_helps_against_ends_it_with_one_warning(
    code: int, with_subscription: bool
) -> None:
    if with_subscription:
        world = World(subscription=WANTED)
        world.pushed()
        (warning,) = world.post(PushAnswered(code, 100))
    else:
        world = World()
        world.post(Begun())
        (warning,) = world.post(answer(error=code))
    assert isinstance(warning, Warn)
    assert world.core.state is State.OVER
    assert world.core.due_ms is None
    assert world.core.ended_by in warning.text
    assert world.post(Timer()) == world.post(CloseRequested()) == world.post(OK) == []


@pytest.mark.parametrize("code", [ErrorCode.NETWORK_EXCEPTION, *RULES])
def test_a_question_that_was_refused_is_never_asked_again_at_once(code: int) -> None:
    world = World()
    world.post(Begun())
    world.post(answer(error=code))
    assert world.core.due_ms is None or world.core.due_ms == world.now_ms + 300_000


def test_a_question_that_was_lost_is_asked_again_ever_more_slowly() -> None:
    world = World()
    world.post(Begun())
    pauses: list[int] = []
    for _ in range(12):
        assert world.post(Lost(was_sent=True)) == []
        passed_ms, commands = world.wait()
        assert commands == [Subscribe(NO_INSTANCE)]
        pauses.append(passed_ms)
    assert pauses[:4] == [1_000, 2_000, 4_000, 8_000]
    assert pauses[-1] == 300_000
    world.post(answer(NOTHING))
    world.wait()
    world.post(Lost(was_sent=False))
    assert world.wait()[0] == 1_000


@pytest.mark.parametrize("was_sent", [False, True])
def test_a_push_that_was_lost_is_followed_by_the_next_one(was_sent: bool) -> None:
    world = World(subscription=WANTED)
    push = world.pushed()
    assert world.post(Lost(was_sent)) == []
    assert world.wait() == (60_000, [push])


def test_where_nobody_takes_metrics_it_is_over_without_a_warning() -> None:
    world = World()
    world.post(Begun())
    assert world.post(Unserved("no broker offers it")) == []
    assert world.core.state is State.OVER
    assert world.core.ended_by == "no broker offers it"


# -- the end -------------------------------------------------------------------------------------

LAST = Push(ME, WANTED, 0, 1_000, terminating=True)


def test_who_is_closed_pushes_for_the_last_time() -> None:
    world = World(subscription=WANTED)
    assert world.post(CloseRequested()) == [LAST]
    assert world.post(CloseRequested()) == []
    assert world.post(OK) == []
    assert world.core.state is State.OVER


def test_the_last_push_waits_for_the_one_before() -> None:
    world = World(subscription=WANTED)
    world.pushed()
    assert world.post(CloseRequested()) == []
    assert world.post(OK) == [LAST]
    assert world.post(Lost(was_sent=True)) == []
    assert world.core.state is State.OVER


@pytest.mark.parametrize(
    "event", [Lost(was_sent=True), PushAnswered(ErrorCode.UNKNOWN_SUBSCRIPTION_ID, 100)]
)
def test_there_is_no_last_push_where_the_one_before_failed(event: Event) -> None:
    world = World(subscription=WANTED)
    world.pushed()
    world.post(CloseRequested())
    assert world.post(event) == []
    assert world.core.state is State.OVER


def test_who_was_not_asked_for_metrics_is_closed_without_a_word() -> None:
    asking = World()
    asking.post(Begun())
    for world in (World(), asking, World(subscription=NOTHING)):
        assert world.post(CloseRequested()) == []
        assert world.core.state is State.OVER


# -- whatever happens ----------------------------------------------------------------------------


def _any_event(dice: random.Random) -> Event:
    code = dice.choice([0, 0, 0, *RULES, ErrorCode.NETWORK_EXCEPTION, NEW])
    events: list[Event] = [
        Timer(),
        answer(dice.choice([WANTED, NOTHING, replace(WANTED, push_interval_ms=-5)]), code),
        PushAnswered(code, dice.randrange(2_000)),
        Lost(dice.random() < 0.5),
        Begun(),
        *([CloseRequested()] if dice.random() < 0.1 else []),
        *([Unserved("")] if dice.random() < 0.1 else []),
    ]
    return dice.choice(events)


@pytest.mark.parametrize("seed", range(examples(200)))
def test_whatever_comes_one_request_is_on_its_way_and_pushes_keep_their_distance(
    seed: int,
) -> None:
    dice = random.Random(seed)
    world = World(0, 1)
    on_its_way: Command | None = None
    answered_ms = terminated = 0
    for _ in range(200):
        world.now_ms += dice.choice([0, 1, 40_000, 400_000])
        event = _any_event(dice)
        if isinstance(event, SubscriptionAnswered | PushAnswered | Lost | Unserved):
            was_push = isinstance(on_its_way, Push)
            if on_its_way is None or isinstance(
                event, SubscriptionAnswered if was_push else PushAnswered
            ):
                continue  # nobody answers what was not asked
            if was_push:
                answered_ms = world.now_ms
            on_its_way = None
        for command in world.post(event):
            if isinstance(command, Warn):
                continue
            assert on_its_way is None, "one at a time"
            on_its_way = command
            if isinstance(command, Push):
                terminated += command.terminating
                early = world.now_ms < answered_ms + command.subscription.push_interval_ms
                assert command.terminating or not early
        assert terminated <= 1
        if world.core.state in (State.TO_ASK, State.TO_PUSH):
            assert world.core.due_ms is not None, "or it would wait for ever"
        elif world.core.state not in (State.NOT_BEGUN, State.OVER):
            assert on_its_way is not None, "or it would wait for ever"
