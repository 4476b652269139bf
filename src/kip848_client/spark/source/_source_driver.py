"""``SourceDriver``: the state of a query in Spark's source process.

Spark calls from one thread and waits without a timeout. So the work is done in an event loop in
another thread, and each call has a deadline. Nothing connects before the first call that needs
brokers, because Spark makes readers in several processes.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
import uuid
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, Final, TypeVar

from kip848_client.core.types import TopicPartition
from kip848_client.errors import ConfigError, Kip848Error
from kip848_client.spark._channel import ControlServer
from kip848_client.spark._loop import LoopThread
from kip848_client.spark.source._cluster import Cluster
from kip848_client.spark.source._commit_log import CommitLog
from kip848_client.spark.source._ownership import Ownership, Ranges
from kip848_client.spark.source.core._begin import Lineage
from kip848_client.spark.source.core._manifest import Manifest
from kip848_client.spark.source.core._options import SourceOptions
from kip848_client.spark.source.core._ownership import (
    GroupState,
    check_ownership,
    check_unused,
    first_manifest,
    lineage_of,
)
from kip848_client.spark.source.core._planning import Planning, Seen

__all__ = ["SourceDriver"]

_log = logging.getLogger("kip848_client.spark")

_LEAVE_MS: Final = 5_000
_LOOK_S: Final = 1.0
"""How often the option ``checkpoint`` looks into Spark's log of commits."""
_COMMIT_S: Final = 3_600.0
"""How often it is checked whether the group lacks positions."""

T = TypeVar("T")


class SourceDriver:
    """One query. Spark calls its methods from one thread, one at a time, and what they raise ends
    the query. All other methods run in the loop."""

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._planning = Planning(options.fails_on_data_loss, options.at_least, options.delay_ms)
        self._loop = LoopThread("kip848-spark-source")
        self._cluster: Cluster | None = None
        self._ownership: Ownership | None = None
        self._me: Lineage | None = None
        self._start: tuple[Manifest, GroupState] | None = None
        """The start of the query, and the group as it was then. Spark asks for it twice before the
        first batch, and again when it repeats that batch."""
        self._control: ControlServer | None = None
        self._log = None if options.checkpoint is None else CommitLog(options.checkpoint)
        self._watching: asyncio.Task[None] | None = None
        self._finished = asyncio.Condition()
        """Notified when Spark has finished a batch."""
        self._seen: Seen | None = None
        self._epoch_ends: dict[tuple[TopicPartition, int, int], int] = {}
        """Where leader epochs end, by partition, that epoch and the current one."""
        self._repeated: dict[str, Ranges] = {}
        """What to read of a batch that an earlier run planned, by the text of its manifest: Spark
        asks once per use of the stream, and must get the same each time."""
        self._is_planned = False
        """Whether this process has planned a batch: a batch before that is an earlier run's."""

    # -- what Spark calls --------------------------------------------------------------------

    def first(self) -> Manifest:
        """The offsets at which a query without a checkpoint starts."""
        return self._call(self._first())

    def stop_at_what_is_there(self) -> None:
        """AvailableNow: read no further than ``endingOffsets`` and its relatives say, nor than the
        current ends of all partitions. Raises ``ConfigError``."""
        self._planning.until = self._call(self._ends())

    def next(self, start: Manifest, limit: int | None) -> Manifest:
        """The batch after ``start``, which is committed; ``start`` itself if there is none."""
        return self._call(self._next(start, limit))

    def batch(self, planned: Manifest) -> Ranges:
        """The ranges of a batch to read now: all of them, unless an earlier run planned it."""
        if self._is_planned:
            return planned.ranges
        text = json.dumps(planned.to_json())
        if text not in self._repeated:
            self._repeated[text] = self._call(self._again(planned))
        return self._repeated[text]

    def ends(self) -> dict[str, Any] | None:
        """The ends of the partitions when the brokers were last asked."""
        return None if self._seen is None else self._seen.ends_json()

    def close(self) -> None:
        """Leave the group and disconnect. Never raises. After an error Spark may call it twice."""
        if self._loop.is_closed:
            return
        try:
            self._loop.call(self._end(), _LEAVE_MS)
        except Exception as err:  # noqa: BLE001  # the process ends, and no caller would see it
            _log.warning("the source did not disconnect in time: %s", err)
        self._loop.close()

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.call(work, self._options.poll_timeout_ms)

    # -- in the loop -------------------------------------------------------------------------

    async def _ends(self) -> dict[TopicPartition, int]:
        seen = await self._look()
        return await (await self._connected()).places(self._options.ending, seen)

    async def _first(self) -> Manifest:
        if self._start is None:
            cluster = await self._connected()
            seen = await self._look()
            group = await cluster.group_state(self._options.group_id)
            places = await cluster.places(self._options.starting, seen)
            me = lineage_of(None, self._options, _new_token())
            self._start = first_manifest(me, self._options, places, seen, group), group
        return self._start[0]

    async def _next(self, start: Manifest, limit: int | None) -> Manifest:
        ownership = await self._taken_over(start, is_repeated=False)
        await self._batch_done(start)
        in_hand = ownership.in_hand
        if in_hand is not None and start.number < in_hand.number:
            return in_hand  # Spark has not begun it
        if self._planning.is_draining:
            return start
        found = await ownership.next(await self._look(), limit, _now_ms())
        self._warn_of_losses()
        self._is_planned = True
        return start if found.number == start.number else found

    async def _again(self, planned: Manifest) -> Ranges:
        ownership = await self._taken_over(planned, is_repeated=True)
        found = await ownership.again(await self._look())
        self._warn_of_losses()
        return found

    async def _taken_over(self, kept: Manifest, *, is_repeated: bool) -> Ownership:
        """The query's ownership, which continues from its first manifest in this process."""
        if self._ownership is not None:
            return self._ownership
        check_ownership(kept, self._options)
        cluster = await self._connected()
        me = self._lineage(kept)
        seen = await self._look(kept)
        ownership = self._new_ownership(cluster, me, kept)
        try:
            await ownership.take_over(seen, is_repeated=is_repeated)
        except BaseException:  # a member that has joined must leave
            await ownership.leave()
            raise
        self._warn_of_losses()
        self._me, self._ownership = me, ownership
        self._watching = asyncio.create_task(self._watch())
        return ownership

    def _lineage(self, kept: Manifest) -> Lineage:
        """This run of the query. Raises ``ConfigError`` if it begins in a group of others."""
        if self._start is None or self._start[0].token != kept.token:
            return lineage_of(kept, self._options, _new_token())
        start, group = self._start
        me = lineage_of(None, self._options, start.token)
        check_unused(me, self._options, group)
        return me

    def _new_ownership(self, cluster: Cluster, me: Lineage, kept: Manifest) -> Ownership:
        if self._options.is_shared:
            # imports a consumer, which takes half a second
            from kip848_client.spark.source._shared import SharedOwnership

            return SharedOwnership(self._options, cluster, self._planning, me, kept, self._look)
        from kip848_client.spark.source._exclusive import ExclusiveOwnership

        return ExclusiveOwnership(cluster, self._planning, me, kept)

    async def _batch_done(self, batch: Manifest) -> None:
        """Spark has committed this batch: commit its offsets to the group. If that fails, they are
        committed with the next batch: Spark's checkpoint counts, and the query continues."""
        if self._ownership is not None:
            await self._ownership.is_done(batch, _now_ms())
        async with self._finished:
            self._finished.notify_all()

    async def _drained(self) -> None:
        """Plan nothing more, wait until Spark has finished its batch, commit, leave the group."""
        self._planning.is_draining = True
        ownership = self._ownership
        if ownership is None:
            return
        async with self._finished:
            await self._finished.wait_for(lambda: ownership.in_hand is None)
        await ownership.commit(_now_ms())
        await ownership.leave()

    async def _watch(self) -> None:
        """Inform the group between two triggers."""
        while True:
            await asyncio.sleep(_COMMIT_S if self._log is None else _LOOK_S)
            await self._look_into_log()
            if self._ownership is not None:
                await self._ownership.commit(_now_ms())

    async def _look_into_log(self) -> None:
        if self._log is None or self._me is None:
            return
        try:
            done = await asyncio.to_thread(self._log.news, self._me.token)
        except (OSError, ValueError, Kip848Error) as err:  # the group hears of it at the next batch
            _log.warning("the checkpoint cannot be read: %s", err)
            return
        if done is not None:
            await self._batch_done(done)

    async def _connected(self) -> Cluster:
        if self._cluster is None:
            cluster = Cluster(self._options)
            await cluster.start()
            self._cluster = cluster
            if self._options.control is not None:
                self._control = ControlServer(self._options.control, self._controlled)
                await self._control.start()
        return self._cluster

    async def _controlled(self, request: dict[str, Any]) -> dict[str, Any]:
        """Answer a request of the control channel. Raises ``ConfigError``."""
        match request:
            case {"done": dict(said)}:
                await self._batch_done(Manifest.of(said))
            case {"drain": True}:
                await self._drained()
            case {"status": True}:
                pass
            case _:
                raise ConfigError(f"unknown control request: {request!r}")
        return self._status()

    def _status(self) -> dict[str, Any]:
        ownership = self._ownership
        in_hand = None if ownership is None else ownership.in_hand
        base = {
            "ownership": self._options.ownership,
            "batch": None if in_hand is None else in_hand.number,
            "ranges": None if in_hand is None else self._read_of(in_hand),
        }
        none = {"partitions": 0, "lag": 0}
        return base | (none if ownership is None else ownership.status(self._seen))

    def _read_of(self, batch: Manifest) -> dict[str, Any]:
        """What is read of a batch: less than planned if it is repeated and others have a part."""
        ranges = self._repeated.get(json.dumps(batch.to_json()), batch.ranges)
        found: dict[str, dict[str, list[int]]] = {}
        for (topic, partition), span in sorted(ranges.items()):
            found.setdefault(topic, {})[str(partition)] = list(span)
        ids = {name: batch.topic_ids[name] for name in found if name in batch.topic_ids}
        return {"number": batch.number, "ranges": found, "topics": ids}

    async def _look(self, kept: Manifest | None = None) -> Seen:
        """Ask for the bounds of all partitions, and where the leader epochs of the checkpoint end
        if they may have changed."""
        cluster = await self._connected()
        seen = await cluster.seen()
        if kept is None and self._ownership is not None:
            kept = self._ownership.kept
        if kept is not None:
            seen = await self._with_epoch_ends(cluster, kept, seen)
        self._seen = seen
        return seen

    async def _with_epoch_ends(self, cluster: Cluster, kept: Manifest, seen: Seen) -> Seen:
        changed = {
            tp: (tp, kept.epochs[tp], now)
            for tp, now in seen.epochs.items()
            if tp in kept.epochs and (kept.epochs[tp] != now or self._ownership is None)
        }
        asked = {tp: key[1] for tp, key in changed.items() if key not in self._epoch_ends}
        for tp, end in (await cluster.epoch_ends(asked)).items():
            self._epoch_ends[changed[tp]] = end
        ends = {tp: self._epoch_ends[key] for tp, key in changed.items() if key in self._epoch_ends}
        return replace(seen, epoch_ends=ends) if ends else seen

    async def _end(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
        await self._look_into_log()
        if self._ownership is not None:
            await self._ownership.leave()
        if self._control is not None:
            await self._control.stop()
        if self._cluster is not None:
            await self._cluster.stop()

    def _warn_of_losses(self) -> None:
        for what in self._planning.losses:
            _log.warning("records are lost, and the query continues: %s", what)
        self._planning.losses.clear()


def _new_token() -> str:
    return uuid.uuid4().hex[:12]


def _now_ms() -> int:
    return int(time.monotonic() * 1000)
