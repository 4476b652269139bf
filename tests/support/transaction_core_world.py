"""The same world around the whole core of a producer, with aiokafka's builder of batches."""

from __future__ import annotations

from collections.abc import Callable

from kip848_client.core.cluster import (
    LeadersLearnt,
    LeadersNotLearnt,
    LearnLeaders,
    PartitionLeader,
    TopicLeaders,
)
from kip848_client.core.produce import _commands as do
from kip848_client.core.produce import _events as ev
from kip848_client.core.produce._core import ProducerCore
from kip848_client.core.produce._model import Produced
from kip848_client.core.produce._wire import produce_answer, produce_request, produce_versions
from kip848_client.core.types import TopicId, TopicPartition
from kip848_client.error_codes import ErrorCode
from kip848_client.runtime.net._builder import builder_maker
from tests.support.transaction_world import Event, World

__all__ = ["CoreWorld"]

_BY_NAME: int = 12
"""The newest Produce that names topics."""
_PARTITIONS = 3


class CoreWorld(World):
    """Batches of several records, several on their way."""

    core: ProducerCore
    bad: set[bytes]

    def new_client(self) -> None:
        self.generation += 1
        self.waits.clear()
        self.bad = set()
        jitter = self.dice.random() * 0.4 + 0.8
        self.core = ProducerCore(
            self.settings,
            lambda ms: int(ms * jitter),
            self.dice.randrange,
            builder_maker(None),
        )
        self.post(ev.TransactionVersionLearnt(self.level))
        self.post(ev.TopicWanted(0, self.broker.topic, self.now + 10**9))

    def post(self, event: Event) -> None:
        for command in self.core.step(self.now, event):
            self.take(command)
        self.check_waits()

    def settle(self) -> None:
        self.post(ev.TimerFired())

    def append(self, tp: TopicPartition, value: bytes, *, bad: bool) -> None:
        if bad:
            self.bad.add(value)
        placed = self.core.append(self.now, tp, self.now, None, value, ())
        assert placed is not None, "no room"
        if placed.notify:
            self.post(ev.Appended())

    def give_up(self, ticket: int) -> None:
        self.post(ev.WaitEnded(ticket))

    def due_ms(self) -> list[int]:
        due = self.core.deadline_ms
        return [] if due is None else [due]

    def take(self, command: do.Command | LearnLeaders) -> None:
        match command:
            case do.SendProduce():
                self._send(command)
            case LearnLeaders():
                self._learn(command)
            case do.BatchDone() | do.BatchFailed() | do.BatchSplit() | do.RoomMade() | do.Notice():
                pass
            case _:
                super().take(command)

    def _learn(self, command: LearnLeaders) -> None:
        if self.chance(0.05):
            self.answer_later(LeadersNotLearnt(command.number, "nobody answers"))
            return
        leaders = {number: PartitionLeader(1, 0) for number in range(_PARTITIONS)}
        told = TopicLeaders(self.broker.topic, TopicId(bytes(15) + b"\1"), leaders)
        self.answer_later(LeadersLearnt(command.number, (told,), frozenset(), frozenset({1})))

    def _send(self, command: do.SendProduce) -> None:
        lowest, highest = produce_versions(command)
        version = min(highest, _BY_NAME)
        assert lowest <= version
        request = produce_request(command)

        def execute() -> ev.ProduceAnswered:
            answer = produce_answer(command, self.raw.raw_request(request, version))
            codes = {tp[1]: each.error_code for tp, each in answer.partitions.items()}
            self.note(f"produce {command.produce} v{version} -> {codes}")
            return answer

        fate = self.fate()
        lost = ev.ProduceLost(command.produce, "connection lost", True)
        refused = [each for each in command.batches if any(bad in each.data for bad in self.bad)]
        event: ev.Event = lost
        if refused:
            event = self._all(command, ErrorCode.INVALID_RECORD)
        elif fate < 0.05:
            execute()
        elif fate < 0.09:
            self.note(f"produce {command.produce} is lost")
        elif fate < 0.13:
            self.note(f"produce {command.produce} comes late")
            self.after(self.dice.choice([50, 300, 1_500, 4_000]), _without_answer(execute))
        elif fate < 0.15:
            event = ev.ProduceLost(command.produce, "no connection", False)
        elif fate < 0.17:
            event = self._all(command, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        else:
            event = execute()
        self.answer_later(event)

    @staticmethod
    def _all(command: do.SendProduce, code: int) -> ev.Event:
        answers = {each.tp: Produced(error_code=code) for each in command.batches}
        return ev.ProduceAnswered(command.produce, answers)


def _without_answer(execute: Callable[[], object]) -> Callable[[], None]:
    def run() -> None:
        execute()

    return run
