"""All checkers of a world of fetching, and the one place that its actors report to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from kip848_client.core.cluster import ClusterChanged, LeadersLearnt, LeadersNotLearnt, LearnLeaders
from kip848_client.core.fetch import (
    BufferRead,
    Command,
    CommittedFailed,
    Event,
    FetchAnswered,
    FetchCore,
    FetchLost,
    ListOffsets,
    Notice,
    OffsetsListed,
    OffsetsNotListed,
    Positioned,
    SendFetch,
    Slice,
    TimerFired,
)
from kip848_client.core.types import TopicIdPartition, TopicPartition
from kip848_client.core.wire.messages.fetch import FetchRequest
from mock_coordinator.sim.fetching.delivery_checks import DeliveryChecks
from mock_coordinator.sim.fetching.request_checks import RequestChecks
from mock_coordinator.sim.log_truth import LogTruth

__all__ = ["Checks"]


_NO_NEWS: Final = (
    BufferRead,
    CommittedFailed,
    FetchAnswered,
    FetchLost,
    LeadersNotLearnt,
    OffsetsListed,
    OffsetsNotListed,
    TimerFired,
)


class Checks:
    """Watches one core, its user and its brokers."""

    def __init__(
        self,
        truth: LogTruth,
        *,
        read_committed: bool,
        may_reset: bool,
        has_data: Callable[[TopicIdPartition, int], bool],
    ) -> None:
        self.reading = DeliveryChecks(truth, read_committed, may_reset)
        self.asking = RequestChecks(self._is_wanted, has_data)
        self._core: FetchCore | None = None
        self._told: object = None
        """What metadata said last."""

    # -- brokers -----------------------------------------------------------------------------

    def arrived(self, request: FetchRequest, version: int) -> None:
        """A broker reads a fetch."""
        self.asking.arrived(request, version)

    def out_of_range(self, key: TopicIdPartition, offset: int) -> None:
        """A leader answers so."""
        self.reading.out_of_range(key, offset)

    def diverged(self, key: TopicIdPartition, end: int) -> None:
        """A broker answers so."""
        self.reading.diverged(key, end)

    # -- the core ----------------------------------------------------------------------------

    def watch(self, core: FetchCore) -> None:
        """From now on this core is meant."""
        self._core = core

    def shut(self, tp: TopicPartition, why: str, *, on: bool) -> None:
        """Nothing of a partition may be handed out or fetched any more, or that is over."""
        reasons = self.reading.shut.setdefault(tp, set())
        if on:
            reasons.add(why)
        else:
            reasons.discard(why)

    def stepped(self, now_ms: int, event: Event, commands: Sequence[Command]) -> None:
        """The core took an event and asks for these."""
        core = self._core
        assert core is not None, "a core is watched"
        positioned = [each for each in commands if isinstance(each, Positioned)]
        told = [each for each in commands if isinstance(each, Notice)]
        self.reading.stepped(core, event, positioned, told)
        if isinstance(event, ClusterChanged):
            self.asking.begin_anew()
        if positioned or self._is_a_reason(event):
            self.asking.moved()
        if isinstance(event, FetchAnswered):
            self.asking.answered(now_ms, event.fetch, event.answer)
        elif isinstance(event, FetchLost):
            self.asking.lost(event.fetch, sent=event.sent)
        for command in commands:
            if isinstance(command, SendFetch):
                self.asking.sent(now_ms, command)
            elif isinstance(command, LearnLeaders | ListOffsets):
                self.asking.asked(now_ms, command)

    def _is_a_reason(self, event: Event) -> bool:
        """Whether what happened is more than time, and answers that say nothing new."""
        if isinstance(event, LeadersLearnt):
            told, self._told = self._told, (event.topics, event.gone, event.nodes)
            return told != self._told
        return not isinstance(event, _NO_NEWS)

    def _is_wanted(self, key: TopicIdPartition) -> bool:
        """Whether a partition may be fetched now."""
        core = self._core
        assert core is not None, "a core is watched"
        for tp in core.assigned:
            if (core.topic_id(tp), tp.partition) == key:
                return not self.reading.shut.get(tp)
        return False

    # -- the user ----------------------------------------------------------------------------

    def record(self, taken: Slice, offset: int, value: bytes) -> None:
        """It gets a record."""
        assert self._core is not None, "a core is watched"
        self.reading.record(self._core, taken, offset, value)

    def finished(self, taken: Slice) -> None:
        """It has read a slice."""
        assert self._core is not None, "a core is watched"
        self.reading.finished(self._core, taken)
