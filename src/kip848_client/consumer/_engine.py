"""Everything that runs between ``start`` and ``stop`` of a consumer, wired together.

One asyncio task holds the task group of all other tasks of the consumer. ``open`` and ``close`` may
be called from different tasks, as pytest fixtures and web frameworks do.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, Generic, TypeVar

import anyio
from anyio.abc import TaskGroup

from kip848_client.config import ConsumerConfig
from kip848_client.consumer._assignors import LocalAssignors
from kip848_client.consumer._commits import Commits
from kip848_client.consumer._error_box import ErrorBox
from kip848_client.consumer._factories import (
    Network,
    connections,
    fetch_core,
    group_core,
)
from kip848_client.consumer._fetch_driver import FetchDriver
from kip848_client.consumer._fetchable import Fetchable
from kip848_client.consumer._group_driver import GroupDriver
from kip848_client.consumer._observers import ConsumerObservers
from kip848_client.consumer._offset_types import OffsetAndMetadata
from kip848_client.consumer._poller import Caller, Poller, calling_task
from kip848_client.consumer._positions import Positions
from kip848_client.consumer._record_path import RecordPath
from kip848_client.consumer._requests import GroupRequests
from kip848_client.consumer._user_commits import UserCommits
from kip848_client.core.fetch import AssignmentChanged, Event, Started, TopicsLimited
from kip848_client.core.member import (
    LeaveMode,
    LeaveRequested,
    Polled,
    Subscribed,
)
from kip848_client.core.offsets import (
    CommittableOffset,
    OffsetTracker,
)
from kip848_client.core.types import GroupId, TopicId, TopicPartition
from kip848_client.errors import (
    Kip848Error,
    LocalProtocolError,
    UnsupportedVersion,
)
from kip848_client.observe.core.watching import FetchMeter
from kip848_client.records import Decoding
from kip848_client.runtime._closing import Closing
from kip848_client.runtime._membership import new_member_id
from kip848_client.runtime.client._event_streams import EventHub
from kip848_client.runtime.client._runtime import ClientRuntime
from kip848_client.runtime.clock import wall_clock_origin_ms
from kip848_client.runtime.net._transport import protocol_unsupported

__all__ = ["Engine"]

K = TypeVar("K")
V = TypeVar("V")

_log = logging.getLogger("kip848_client")

_CLOSE_PATIENCE_MS: Final = 5_000
_RESERVE_MS: Final = 2_000
"""Part of the stop timeout reserved for committing and leaving if no task returns in time (a
quarter, if that is less)."""
_GRACE_S: Final = 1.0
"""Extra time for a step that should have ended."""


class Engine(Generic[K, V]):
    """A running consumer. ``listener`` returns the user's current listener."""

    def __init__(
        self,
        runtime: ClientRuntime,
        config: ConsumerConfig,
        decoding: Decoding,
        listener: Callable[[], object | None],
        network: Network = connections,
        events: EventHub | None = None,
    ) -> None:
        self.config = config
        self._listener = listener
        self.runtime: Final = runtime
        self.clock: Final = runtime.clock
        self.member_id = new_member_id()
        hub = (events or EventHub()).checked_by(runtime.home.check)
        self.observers: Final = ConsumerObservers(config, self.clock, hub)
        self.transport: Final = network(config, self.clock)
        self.observers.connected(config, self.transport, self.member_id)
        runtime.connect(self.transport, self.observers)
        self.topics: Final = runtime.topic_directory(config, self._post)
        self.tracker = OffsetTracker()
        self.errors = ErrorBox(self._on_error)
        self._membership = self._build_membership() if config.group_id is not None else None
        self.commits = None if self._membership is None else self._membership.commits
        self.core = fetch_core(config, self.clock)
        meter, polls = self.observers.fetch_meter(self.core), self.observers.poll_meter()
        self.path: RecordPath[K, V] = RecordPath(
            self.core,
            self._post,
            self.tracker,
            decoding,
            self._on_moved,
            None if meter is None else meter.handed_out,
        )
        self.fetching = self._build_fetching(meter)
        self.poller: Poller[K, V] = Poller(
            self.path, self.errors, poll_interval_ms=config.poll_interval_ms, meter=polls
        )
        self.positions = Positions(
            self.fetching, self.errors, self.clock, patience_ms=config.default_api_timeout_ms
        )
        self.user_commits = None if self.commits is None else self._build_user_commits(self.commits)
        self.group_driver: GroupDriver | None = None
        """The driver of the membership, once there was a subscription."""
        self._assignment: dict[TopicPartition, TopicId | None] = {}
        """The assigned partitions, with the topic id if the group sent it."""
        self.fetchable = Fetchable(self.fetching.post)
        self._group: TaskGroup | None = None
        self._running = asyncio.Event()
        self._drain_by_ms = 0
        self._leave_mode = LeaveMode.DEFAULT
        self._leaving = self._by_hand = False
        self._starts: set[asyncio.Task[None]] = set()

    # -- building --------------------------------------------------------------------------------

    def _build_fetching(self, meter: FetchMeter | None) -> FetchDriver:
        return FetchDriver(
            self.core,
            self.transport,
            self.topics,
            self.commits,
            self.path,
            self.clock,
            patience_ms=self.config.default_api_timeout_ms,
            request_timeout_ms=self.config.request_timeout_ms,
            meter=meter,
            fields=self.observers.fields,
        )

    def _build_user_commits(self, commits: Commits) -> UserCommits:
        return UserCommits(
            commits,
            self.tracker,
            self.path.in_flight,
            self.errors,
            self.clock,
            refresh_tracker=self.path.report,
            in_group=lambda: self._by_hand or commits.member_epoch is not None,
            timeout_ms=self.config.default_api_timeout_ms,
        )

    def _build_membership(self) -> GroupDriver:
        config = self.config
        assert config.group_id is not None
        requests = GroupRequests(
            GroupId(config.group_id),
            self.member_id,
            config.group_instance_id,
            self.transport,
            self.topics,
            _unsupported,
            offers_assignors=bool(config.group_local_assignors),
            fields=self.observers.fields,
        )
        assignors = LocalAssignors(config.group_local_assignors, self.observers.fields)
        return GroupDriver(
            group_core(
                config,
                self.member_id,
                self.tracker,
                self.topics.id_of,
                self._read_id,
                assignors.offer(),
            ),
            requests,
            self,
            self.errors,
            self.clock,
            self.observers,
            listener=self._listener,
            callback_timeout_ms=config.callback_timeout_ms,
            assignors=assignors,
            instance_id=config.group_instance_id,
        )

    def _read_id(self, tp: TopicPartition) -> TopicId | None:
        """The topic id under which a manually assigned partition is read."""
        return self.fetching.core.topic_id(tp)

    # -- life ------------------------------------------------------------------------------------

    async def open(self, topics: Collection[str]) -> None:
        """Connect. Raises ``BootstrapFailed``, ``ProtocolUnsupported`` and ``BrokerError``."""
        link = await self.transport.bootstrap()
        if self.config.group_id is not None:
            self.transport.require_kip848(link)
            if self.config.group_local_assignors:
                self.transport.require_client_assignors(link)
        self.topics.want(topics)
        await self.topics.refresh()
        self.runtime.run(self._run(), self._end_waits)
        await self._running.wait()
        self.observers.telemetry.begin()

    async def _run(self) -> None:
        async with anyio.create_task_group() as group:
            self._group = group
            if self._membership is not None:
                group.start_soon(self._run_membership, self._membership)
            group.start_soon(self.topics.run)
            group.start_soon(self.fetching.run)
            await self.fetching.begun()
            self._running.set()

    def _end_waits(self, error: Kip848Error | None) -> None:
        """End the waiting calls, and let later ones raise ``error``; ``None``: closed."""
        self._running.set()
        self.fetching.end_waits(error)
        if error is None:
            self.positions.close()
        else:
            self.errors.raise_always(error)
            self.positions.wake_waiters()
        if self.commits is not None:
            self.commits.close(error)

    def _spawn(self, function: Callable[..., Any], *arguments: Any) -> None:
        group = self._group
        assert group is not None, "open() comes first"

        async def start() -> None:
            if not group.cancel_scope.cancel_called:
                group.start_soon(function, *arguments)

        if calling_task() is not None:
            group.start_soon(function, *arguments)
        else:  # called by a timer or signal; anyio starts tasks from tasks only
            task = self.runtime.home.loop.create_task(start())
            self._starts.add(task)
            task.add_done_callback(self._starts.discard)

    # -- the end ---------------------------------------------------------------------------------

    def stop(self, caller: Caller, *, mode: LeaveMode, timeout_ms: float, done: bool) -> Closing:
        """Stop delivering; the returned object closes the rest.

        ``done``: whether the records held by ``caller`` count as done. Closing takes about
        ``timeout_ms`` at most; if it has begun already, the nearer deadline counts.
        """
        self.poller.stop(caller, done=done)
        self.poller.stop(asyncio.current_task(), done=done)  # it waits for the end from now on
        if not self.runtime.was_stopped:
            self._leave_mode = mode
            reserve_ms = min(_RESERVE_MS, timeout_ms / 4)
            self._drain_by_ms = self.clock.now_ms() + int(timeout_ms - reserve_ms)
        leave = (self._drain, self._leave_for_good, self._close_sessions)
        return self.runtime.close(timeout_ms, leave, self._hurry)

    def _hurry(self) -> None:
        self._drain_by_ms = self.runtime.close_by_ms
        self.poller.recheck_deadline()
        if self._leaving:
            self._ask_to_leave()

    async def _drain(self) -> None:
        try:
            if self.errors.fatal is None:
                await self.poller.drain(lambda: self._drain_by_ms / 1000)
        finally:
            self.poller.close()

    async def _leave_for_good(self) -> None:
        task = self.runtime.task
        if task is None or task.done():
            return
        auto_commit = self.config.enable_auto_commit
        if self.commits is not None and self.errors.fatal is None:
            # The application's own commits go first: after leaving, it may not commit any more.
            now = self.clock.now_ms()
            half_ms = (self.runtime.close_by_ms - now) // 2
            await self.commits.drain(now + min(half_ms, _CLOSE_PATIENCE_MS))
            if auto_commit and self._by_hand:
                await self.commits.flush(self.runtime.close_by_ms)
        if self.group_driver is not None:
            self._ask_to_leave()
            with anyio.move_on_after(self.runtime.left_s() + _GRACE_S):
                await self.group_driver.left()
        if self.commits is not None and self.errors.fatal is None:
            await self.commits.drain(self.runtime.close_by_ms)

    def _ask_to_leave(self) -> None:
        """Request the leave, again with less time if needed: the nearer deadline counts."""
        self._leaving = True
        if self.group_driver is not None:
            flush = self.config.enable_auto_commit
            self.group_driver.post(
                LeaveRequested(self._leave_mode, self.runtime.close_by_ms, flush=flush, final=True)
            )

    async def _close_sessions(self) -> None:
        await self.fetching.close(self.runtime.left_s())

    def _api_deadline_ms(self) -> int:
        return self.clock.now_ms() + self.config.default_api_timeout_ms

    # -- subscription and assignment -------------------------------------------------------------

    def subscribe(self, topics: frozenset[str], pattern: str | None) -> None:
        """Subscribe as a member of the group, joining at once."""
        assert self._membership is not None, "checked by who calls"
        if self.group_driver is None:
            self.group_driver = self._membership
            self.poller.observe(self.group_driver)
        # Partitions of topics no longer subscribed to are not delivered from now on, though they
        # stay assigned until the coordinator knows (KAFKA-19356).
        self.fetching.post(TopicsLimited(None if pattern is not None else topics))
        self.topics.want(topics)
        if any(self.topics.id_of(each) is None for each in topics):  # the start requests its own
            self.topics.refresh_soon()
        self.group_driver.post(Subscribed(topics, pattern))
        self.group_driver.post(Polled())

    async def _run_membership(self, group_driver: GroupDriver) -> None:
        cause: Exception | None = None
        try:
            await group_driver.run()
        except Exception as err:
            cause = err
            raise
        finally:
            group = self._group
            if group and not group.cancel_scope.cancel_called:
                # No heartbeats are sent any more: the partitions are soon another member's.
                why = f"by a bug of its own: {cause!r}" if cause else "without having been stopped"
                self.runtime.fail(f"the membership ended {why}", cause)

    def unsubscribe(self) -> None:
        """Leave the group, or drop the manual assignment; the caller's records count as done, and
        are committed with auto-commit."""
        self.poller.mark_done(calling_task())
        self.tracker.waive()
        self.topics.want(())
        if self._by_hand:
            self._by_hand = False
            self._give_up(self.core.assigned)
        elif self.group_driver is not None:
            # effective now, not with the next step of the group core
            self.fetching.post(TopicsLimited(frozenset()))
            flush = self.config.enable_auto_commit
            self.group_driver.post(
                LeaveRequested(LeaveMode.DEFAULT, self._api_deadline_ms(), flush=flush)
            )

    def assign(self, partitions: Collection[TopicPartition]) -> None:
        """Consume exactly these, without a membership; the caller's records count as done."""
        self.poller.mark_done(calling_task())
        self.tracker.waive()
        before = self.core.assigned
        dropped = [tp for tp in before if not self._by_hand or tp not in set(partitions)]
        if not self._by_hand:
            self._by_hand = True
            if self.group_driver is not None:
                self.group_driver.detach()  # it may still be leaving
        self._give_up(dropped)
        new = [tp for tp in partitions if tp not in before or tp in dropped]
        self.fetching.post(TopicsLimited(None))
        self.topics.want({tp.topic for tp in partitions})
        self.assigned(dict.fromkeys(partitions), new)
        self._spawn(self._start_manually, tuple(partitions))

    def _give_up(self, partitions: Collection[TopicPartition]) -> None:
        """Release partitions that the application dropped: commit what is done, with
        auto-commit."""
        if self.commits is not None and self.config.enable_auto_commit:
            self.path.report()
            dirty = self.tracker.dirty()
            offsets = {tp: dirty[tp] for tp in partitions if tp in dirty}
            self.commits.commit_soon(offsets, self._api_deadline_ms())
        self.released(partitions)

    async def _start_manually(self, partitions: Collection[TopicPartition]) -> None:
        try:
            await self.topics.refresh()
        except Kip848Error:
            self.topics.refresh_soon()  # and the core requests what it needs itself
        for tp in partitions:
            known = self.topics.partitions_of(tp.topic)
            if known is not None and tp.partition not in known:
                _log.warning(
                    "%s-%d was assigned by hand and does not exist: its topic has %d partition(s); "
                    "it is consumed once it is there",
                    *(tp.topic, tp.partition, len(known)),
                    extra={**self.observers.fields, "topic": tp.topic, "partition": tp.partition},
                )
        if self._by_hand:  # otherwise it is in a group by now, which decides when to start
            self.started([tp for tp in partitions if tp in self.core.assigned])

    # -- the group driver's ``Assignment`` ------------------------------------------------------

    def refresh(self) -> None:
        self.path.report()

    def assigned(
        self,
        assignment: Mapping[TopicPartition, TopicId | None],
        new: Collection[TopicPartition],
    ) -> None:
        fresh = frozenset(new)
        self.path.forget([tp for tp in self._assignment if tp not in assignment or tp in fresh])
        self.tracker.forget(fresh)
        self.tracker.assign(assignment)
        self._assign(assignment, fresh)

    def started(self, assignment: Collection[TopicPartition]) -> None:
        self.fetching.post(Started(tuple(assignment)))

    def released(self, partitions: Collection[TopicPartition]) -> None:
        self.path.report()
        # With auto-commit, only what the application holds is still its own to commit.
        busy = self.path.in_flight.open() if self.config.enable_auto_commit else None
        self.tracker.lose([tp for tp in partitions if busy is None or tp in busy])
        self.path.forget(partitions)
        self.tracker.forget(partitions)
        gone = frozenset(partitions)
        self._assign({tp: each for tp, each in self._assignment.items() if tp not in gone}, ())

    def _assign(
        self,
        assignment: Mapping[TopicPartition, TopicId | None],
        new: Collection[TopicPartition],
    ) -> None:
        self._assignment = dict(assignment)
        self.fetchable.assignment_changed()
        self.fetching.post(AssignmentChanged(self._assignment, frozenset(new)))
        # With a pattern, only the assignment shows which matched topics are still ours.
        names = {tp.topic for tp in assignment}
        self.topics.watch(names)
        self.topics.retain(names)
        # Calls waiting for a lost partition must end.
        self.path.wake()
        self.positions.wake_waiters()

    def fetch_only(
        self, fetchable: Collection[TopicPartition], of: Mapping[TopicPartition, TopicId]
    ) -> None:
        self.fetchable.fetch_only(fetchable, of)

    def want_poll(self) -> None:
        self.poller.attention()

    async def until_done(self, partitions: Collection[TopicPartition]) -> None:
        await self.poller.until_done(partitions)

    # -- commits ---------------------------------------------------------------------------------

    async def commit(
        self, offsets: Mapping[TopicPartition, CommittableOffset] | None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Commit ``offsets``, or everything delivered."""
        if self.user_commits is None:
            raise LocalProtocolError("offsets are committed for a group: set group_id")
        return await self.user_commits.commit(offsets)

    async def committed(
        self, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, CommittableOffset | None]:
        """Look up the committed offsets of these partitions."""
        if self.commits is None:
            raise LocalProtocolError("offsets are committed for a group: set group_id")
        with self.observers.looking_up():
            return await self.commits.fetch_committed(tuple(partitions), self._api_deadline_ms())

    def fetched_at_ms(self, tp: TopicPartition) -> int | None:
        """When a partition was last fetched, in ms since 1970."""
        answered_ms = self.fetching.answered_ms(tp)
        if answered_ms is None:
            return None
        return wall_clock_origin_ms(self.clock) + answered_ms

    # -- inside ----------------------------------------------------------------------------------

    def _post(self, event: Event) -> None:
        self.fetching.post(event)

    def _on_moved(self) -> None:
        self.positions.wake_waiters()

    def _on_error(self) -> None:
        self.poller.attention()
        self.path.wake()


def _unsupported(error: UnsupportedVersion) -> Kip848Error:
    return protocol_unsupported(f"of the group ({error})", None)
