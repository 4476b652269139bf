"""The consumer's process in a world of fetching: it shows the checkers every step, and stands for
the group's coordinator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from kip848_client.core.cluster import ClusterChanged
from kip848_client.core.fetch import (
    Command,
    CommittedFailed,
    CommittedFound,
    Event,
    FetchSettings,
    LookUpCommitted,
    StoredOffset,
)
from kip848_client.core.types import TopicIdPartition, TopicPartition
from kip848_client.errors import RequestTimedOut
from mock_coordinator.sim.fetching.brokers import RACKS, Brokers
from mock_coordinator.sim.fetching.context import FetchContext
from mock_coordinator.sim.fetching.driver import FetchDriver
from mock_coordinator.sim.fetching.shown import shown
from mock_coordinator.sim.fetching.state_checks import StateChecks
from mock_coordinator.sim.nodes import node_name

__all__ = ["Client"]

NAME: Final = "client"
_PROD_EVERY: Final = 10
"""The number of steps between two trials with events that must change nothing."""
_LOOK_UP_MS_MAX: Final = 1_500
_REQUEST_TIMEOUT_MS: Final = 3_000


class Client:
    """One ``FetchCore``, driven. ``heard`` gets what is for the user."""

    def __init__(
        self, context: FetchContext, brokers: Brokers, heard: Callable[[Command], None]
    ) -> None:
        self._context = context
        self._rng = context.kernel.rng("client")
        settings = self._settings()
        nodes = brokers.core.broker.nodes.ids
        self._driver = FetchDriver(
            settings,
            replace(
                context.wires(NAME, node_name, lambda: nodes),
                request_timeout_ms=_REQUEST_TIMEOUT_MS,
            ),
            self._rng,
            look_up=self._look_up,
            heard=heard,
            enter=lambda action: action(),
            watch=self._watch,
        )
        self.core = self._driver.core
        self._state_checks = StateChecks(
            self.core, settings, brokers.session, lambda: brokers.longest_batch
        )
        self.committed: dict[TopicIdPartition, StoredOffset] = {}
        self.steps = 0
        context.checks.watch(self.core)

    def _settings(self) -> FetchSettings:
        options = self._context.options
        return FetchSettings(
            min_bytes=options.min_bytes,
            max_wait_ms=options.max_wait_ms,
            max_bytes=options.max_bytes,
            max_partition_bytes=options.max_partition_bytes,
            buffer_bytes=options.buffer_bytes,
            read_committed=options.read_committed,
            rack=self._rng.choice(RACKS) if options.near else "",
            reset_policy=options.reset_policy,
            reset_age_ms=10_000,
            has_group=options.has_group,
            request_timeout_ms=options.request_timeout_ms,
            metadata_max_age_ms=60_000,
            rows_a_step=options.rows_a_step,
        )

    def feed(self, event: Event) -> None:
        """Give the core an event, and perform what it asks for."""
        self._driver.feed(event)

    def _watch(self, event: Event, commands: Sequence[Command]) -> None:
        context, now_ms = self._context, self._context.kernel.now_ms
        self.steps += 1
        context.tell(NAME, "event", shown(event))
        for command in commands:
            context.tell(NAME, "command", shown(command))
        context.checks.stepped(now_ms, event, commands)
        self._state_checks.look(event, commands)
        if self.steps % _PROD_EVERY == 0:
            self._state_checks.prod(now_ms)

    @property
    def session_ids(self) -> frozenset[int]:
        """Of the sessions that it believes to have."""
        nodes = self.core.snapshot().nodes.values()
        return frozenset(each.session.session_id for each in nodes) - {0}

    def begin_anew(self) -> None:
        """Go back to the bootstrap servers (KIP-1102): connections end, soon before or after the
        core hears of it."""
        if self._rng.random() < 0.5:
            self._driver.drop()
        self.feed(ClusterChanged())
        self._driver.drop()

    # -- committed offsets -------------------------------------------------------------------

    def commit(self, tp: TopicPartition) -> None:
        """Remember the position as the group's."""
        topic_id, position = self.core.topic_id(tp), self.core.position(tp)
        if topic_id is not None and position is not None:
            stored = StoredOffset(position, self.core.position_epoch(tp))
            self.committed[topic_id, tp.partition] = stored

    def _look_up(self, command: LookUpCommitted) -> None:
        """The coordinator takes its time, and now and then it is not there."""
        context = self._context
        delay_ms = 1 if context.healed else self._rng.randint(0, _LOOK_UP_MS_MAX)
        if context.happens("committed", 0.2):
            error = RequestTimedOut("the coordinator did not answer")
            context.probes.reached("committed offsets not found out")
            failed = CommittedFailed(command.number, error, passing=True)
            context.kernel.after(delay_ms, lambda: self.feed(failed))
            return
        ids = {tp: self.core.topic_id(tp) for tp in command.partitions}
        offsets = {
            tp: None if topic_id is None else self.committed.get((topic_id, tp.partition))
            for tp, topic_id in ids.items()
        }
        found = CommittedFound(command.number, offsets)
        context.kernel.after(delay_ms, lambda: self.feed(found))
