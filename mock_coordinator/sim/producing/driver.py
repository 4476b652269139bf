"""Drives one ``ProducerCore`` over the simulated network: what it asks for is performed, nothing is
decided."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from kip848_client.core.cluster import LeadersLearnt, LearnLeaders
from kip848_client.core.produce import (
    AddOffsets,
    AddPartitions,
    Command,
    CommitOffsets,
    DescribeTransaction,
    EndTransaction,
    Event,
    FindCoordinator,
    InitProducerId,
    ProducerCore,
    ProduceSettings,
    SendProduce,
    TimerFired,
)
from kip848_client.core.types import TopicId
from mock_coordinator.sim.node_requests import Wires
from mock_coordinator.sim.producing.builder import Builder
from mock_coordinator.sim.producing.requests import ProduceRequests
from mock_coordinator.sim.stepping import Stepping

__all__ = ["ProducerDriver"]


class ProducerDriver:
    """``heard`` gets what is for the user, ``enter`` lets something happen as soon as the process
    runs, and ``watch`` sees each step before its commands are performed."""

    def __init__(
        self,
        settings: ProduceSettings,
        wires: Wires,
        rng: Random,
        *,
        heard: Callable[[Command], None],
        enter: Callable[[Callable[[], None]], None],
        watch: Callable[[Event, Sequence[Command]], None],
    ) -> None:
        self._kernel = wires.kernel
        self._rng = rng
        self._heard = heard
        self._watch = watch
        self.core: Final = ProducerCore(settings, self._jitter, rng.randrange, Builder)
        self.ids: Final[dict[str, TopicId]] = {}
        """Of topics, by name, as far as metadata gave them."""
        self._requests = ProduceRequests(wires, self.feed, enter)
        self._stepping: Stepping[Event] = Stepping(
            wires.kernel, self._step, lambda: self.core.deadline_ms, self._fire, enter
        )

    def _jitter(self, pause_ms: int) -> int:
        return self._rng.randint(pause_ms * 4 // 5, max(pause_ms * 6 // 5, 1))

    def feed(self, event: Event) -> None:
        """Give the core an event, and perform what it asks for."""
        if isinstance(event, LeadersLearnt):
            self.ids.update({told.topic: told.topic_id for told in event.topics if told.topic_id})
        self._stepping.post(event)

    def drop(self) -> None:
        """Break all connections off: whatever is under way is lost."""
        self._requests.drop()

    def close(self) -> None:
        """The process is gone."""
        self._requests.close()
        self._stepping.stop()

    def _fire(self) -> None:
        self.feed(TimerFired())

    def _step(self, event: Event) -> None:
        commands = self.core.step(self._kernel.now_ms, event)
        self._watch(event, commands)
        for command in commands:
            self._perform(command)

    def _perform(self, command: Command) -> None:
        match command:
            case SendProduce():
                self._requests.produce(command)
            case (
                InitProducerId()
                | AddPartitions()
                | AddOffsets()
                | CommitOffsets()
                | EndTransaction()
                | DescribeTransaction()
            ):
                self._requests.ask(command)
            case FindCoordinator():
                self._requests.find_coordinator(command)
            case LearnLeaders():
                self._requests.learn_leaders(command)
            case _:
                self._heard(command)
