"""From a seed to a sequence: which request comes next, given what the real broker has answered.

``sequence`` is a generator: it yields steps and is sent what the real broker said. A seed first
draws a mood (some kinds of request never, some often: swarm testing reaches states that an even
mixture does not), then about 48 requests. Between single requests it plays whole stretches in
which every member does what a good client would, so that groups converge and wrong requests meet
interesting states.

Nothing in a sequence may depend on how fast it is played. Timeouts are longer than any sequence,
patterns are waited for, and where the assignment interval is on (``has_interval``), requests come
in bursts that are far shorter than the interval, with pauses that are longer.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from kip848_client.wire.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kip848_client.wire.messages.groups import DeleteGroupsRequest
from tests.differential._groups import GROUPS, describe
from tests.differential._heartbeats import (
    HEARTBEATS,
    Chooser,
    acknowledge,
    join,
    join_static,
    leave_for_a_while,
    return_static,
    steady,
)
from tests.differential._offsets import OFFSETS
from tests.differential._scene import Scene
from tests.differential._steps import (
    INTERVAL_MS,
    Ask,
    AwaitPatterns,
    CreateTopic,
    DeleteTopic,
    GrowTopic,
    Pause,
    Step,
    Topic,
)

__all__ = ["Plan", "TooSlowError", "sequence"]

_REQUESTS: Final = 48
_BURST_MS: Final = 450  # a burst must end well inside the interval that began with it
_DOUBT_MS: Final = 900
_PAUSE_MS: Final = INTERVAL_MS + 250
_PATTERN_LIMIT_MS: Final = 7000  # a second resolution is braked for 10 s; stay clear of that moment
_CONVERGE_ROUNDS: Final = 2

Steps = Generator[Step, Any, None]


class TooSlowError(Exception):
    """The machine was too busy for a sequence whose answers depend on real time; play it again."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a sequence is played on. ``topics`` exist on both sides already; ``attempt`` counts the
    times that it was begun, because each needs groups and topics that nobody has used."""

    seed: int
    topics: Sequence[Topic]
    offered: Mapping[str, tuple[int, int]]
    has_interval: bool = False
    attempt: int = 0
    now_ms: Callable[[], float] = field(default=lambda: time.monotonic() * 1000)

    @property
    def label(self) -> str:
        return f"{self.seed}x{self.attempt}" if self.attempt else str(self.seed)

    @property
    def prefix(self) -> str:
        """What the sequence's group ids begin with."""
        return f"diff-{self.label}"

    @property
    def topic_prefix(self) -> str:
        """What the sequence's own topics begin with."""
        return f"new-{self.label}"

    def again(self, attempt: int) -> Plan:
        """The same plan for another attempt."""
        return replace(self, attempt=attempt)


def sequence(plan: Plan) -> Steps:
    """The steps of one seed. Send each step's result back: the real broker's response to an
    ``Ask``, the ``Topic`` of a ``CreateTopic``, ``None`` for the rest."""
    rng = random.Random(f"differential-{plan.seed}")
    topics = rng.sample(list(plan.topics), rng.randint(1, min(3, len(plan.topics))))
    scene = Scene(
        rng,
        plan.prefix,
        plan.topic_prefix,
        {each.name: each for each in sorted(topics, key=lambda each: each.name)},
        plan.offered,
        uses_patterns=rng.random() < 0.2 and not plan.has_interval,
    )
    return _Conversation(plan, scene).steps()


class _Conversation:
    def __init__(self, plan: Plan, scene: Scene) -> None:
        self._plan = plan
        self._scene = scene
        self._sent = 0
        self._began_ms = plan.now_ms()
        self._burst_began_ms = plan.now_ms()
        self._weights = self._mood(scene.rng)

    @staticmethod
    def _mood(rng: random.Random) -> list[tuple[float, Chooser]]:
        """The table's weights, each kind of request switched off, left alone or favoured."""
        table = (*HEARTBEATS, *OFFSETS, *GROUPS)
        needed = {"join", "acknowledge", "steady", "describe"}
        return [
            (weight * (1 if name in needed else rng.choice([0, 0.5, 1, 1, 3])), chooser)
            for name, weight, chooser in table
        ]

    def steps(self) -> Steps:
        rng = self._scene.rng
        if self._plan.has_interval:
            yield from self._rest()
        yield from self._ask(join(self._scene))
        while self._sent < _REQUESTS and not self._is_late():
            roll = rng.random()
            if roll < 0.06:
                yield from self._converge()
            elif roll < 0.09:
                yield from self._change_topics()
            elif roll < 0.12:
                yield from self._static_absence()
            else:
                yield from self._ask(self._choose())
        yield from self._ask(describe(self._scene))

    def _is_late(self) -> bool:
        spent = self._plan.now_ms() - self._began_ms
        return self._scene.uses_patterns and spent > _PATTERN_LIMIT_MS

    def _choose(self) -> Ask:
        weights = [weight for weight, _ in self._weights]
        while True:
            (_, chooser) = self._scene.rng.choices(self._weights, weights)[0]
            ask = chooser(self._scene)
            if ask is not None:
                return ask

    def _ask(self, ask: Ask | None) -> Steps:
        if ask is None:
            return
        if self._plan.has_interval and self._plan.now_ms() - self._burst_began_ms > _BURST_MS:
            yield from self._rest()
        answer = yield ask
        self._sent += 1
        if self._plan.has_interval and self._plan.now_ms() - self._burst_began_ms > _DOUBT_MS:
            raise TooSlowError(
                "a burst took so long that the two sides may have seen two intervals"
            )
        if answer is not None:
            yield from self._learn(ask.message, answer)

    def _rest(self) -> Steps:
        """Let the interval pass, so that whatever was put off is due."""
        yield Pause(_PAUSE_MS)
        self._burst_began_ms = self._plan.now_ms()

    def _learn(self, message: Any, answer: Any) -> Steps:
        scene = self._scene
        if isinstance(message, ConsumerGroupHeartbeatRequest):
            group = scene.group_named(message.group_id)
            if group is not None:
                group.heard(message, answer)
                if group.uses_patterns:
                    yield AwaitPatterns(group.group_id)
        elif isinstance(message, DeleteGroupsRequest):
            for result in answer.results:
                group = scene.group_named(result.group_id)
                if group is not None and result.error_code == 0:
                    group.deleted()

    def _converge(self) -> Steps:
        """Every member heartbeats and acknowledges, as good clients do, for some rounds."""
        scene = self._scene
        for _ in range(scene.rng.randint(1, _CONVERGE_ROUNDS)):
            if self._plan.has_interval:
                yield from self._rest()
            for member in list(scene.main.members.values()):
                if member.is_away or member.member_id not in scene.main.members:
                    continue
                before = member.assigned
                yield from self._ask(acknowledge(scene, member))
                if member.assigned != before and member.member_id in scene.main.members:
                    yield from self._ask(acknowledge(scene, member))
            if self._sent > _REQUESTS:
                return
        yield from self._ask(describe(scene))

    def _static_absence(self) -> Steps:
        """A static member joins (if none has), goes away, and something happens before it is
        back."""
        scene = self._scene
        if not any(member.instance_id for member in scene.main.members.values()):
            yield from self._ask(join_static(scene))
            yield from self._converge()
        yield from self._ask(leave_for_a_while(scene))
        for _ in range(scene.rng.randrange(4)):
            yield from self._ask(self._choose())
        yield from self._ask(return_static(scene))

    def _change_topics(self) -> Steps:
        """Create a topic that some may be waiting for; grow or delete one of this sequence's
        own."""
        scene = self._scene
        own = [each for each in scene.topics.values() if each.name.startswith(scene.topic_prefix)]
        if scene.future_topics and (not own or scene.rng.random() < 0.6):
            name = scene.future_topics.pop(0)
            scene.topics[name] = yield CreateTopic(name, scene.rng.choice([1, 2, 5]))
        elif own and scene.rng.random() < 0.3 and len(scene.topics) > 1:
            topic = scene.rng.choice(own)
            del scene.topics[topic.name]
            scene.future_topics.append(topic.name)
            yield DeleteTopic(topic.name)
        elif own:
            topic = scene.rng.choice(own)
            topic.partitions += scene.rng.choice([1, 3])
            yield GrowTopic(topic.name, topic.partitions)
        yield from self._ask(steady(scene))
