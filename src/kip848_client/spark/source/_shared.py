"""``SharedOwnership``: a query that is a member of its group (``ownership=shared``).

The member sends heartbeats from its own loop while Spark's thread is busy. It never fetches:
executors read the ranges.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final

from kip848_client.consumer import Consumer
from kip848_client.core.partition_names import shown
from kip848_client.core.types import TopicPartition
from kip848_client.errors import ConsumerClosed, Kip848Error
from kip848_client.spark.source._cluster import Cluster
from kip848_client.spark.source._ownership import Ownership, Ranges
from kip848_client.spark.source.core._begin import Lineage
from kip848_client.spark.source.core._manifest import Manifest
from kip848_client.spark.source.core._options import SourceOptions
from kip848_client.spark.source.core._ownership import is_new_to_the_group, upgraded
from kip848_client.spark.source.core._planning import DataLost, Planning, Seen, lag_of
from kip848_client.spark.source.core._shared_plan import SharedPlan

__all__ = ["LEAVE_MS", "SharedOwnership"]

_log = logging.getLogger("kip848_client.spark")

LEAVE_MS: Final = 5_000
"""The timeout for disconnecting."""
_JOIN_MS: Final = 30_000
"""How long the first batch waits for the group to settle."""
_COMMIT_S: Final = 10.0
"""How long the next batch waits for a commit. A commit for a topic that was deleted, which the
group does not know yet, would be retried for a minute."""
_POLL_S: Final = 5.0
"""The longest time between two polls, which show that the application is alive."""


class SharedOwnership(Ownership):
    """Reads the partitions that the group assigns; revokes them when Spark is done with them."""

    def __init__(
        self,
        options: SourceOptions,
        cluster: Cluster,
        planning: Planning,
        me: Lineage,
        kept: Manifest,
        look: Callable[[Manifest], Awaitable[Seen]],
    ) -> None:
        self._options = options
        self._cluster = cluster
        self._look = look
        self._me = me
        self._plan = SharedPlan(planning, me, kept)
        self._freed = asyncio.Condition()
        """Notified when Spark has finished a batch."""
        self._consumer: Consumer[Any, Any] | None = None
        self._polling: asyncio.Task[None] | None = None
        self._failure: Exception | None = None
        """The error that ended the membership, or made an assignment impossible."""

    # -- what the driver calls -----------------------------------------------------------------

    async def take_over(self, seen: Seen, *, is_repeated: bool) -> None:
        """Inform the group of the checkpoint if it is new to it, then join."""
        plan, group = self._plan, self._me.group
        assert group is not None  # the options require it
        state = await self._cluster.group_state(group)
        kept = plan.kept = upgraded(plan.kept, seen, state)
        if is_repeated:
            plan.in_hand = kept
        if is_new_to_the_group(kept, self._options, state):
            # a batch that is to be repeated is not in Spark's log of commits yet
            starts = {tp: start for tp, (start, _) in kept.ranges.items()} if is_repeated else {}
            positions = {**kept.ends, **starts}
            await self._cluster.commit(
                group,
                {
                    tp: (at, self._me.note(kept.number, kept.topic_ids.get(tp.topic)))
                    for tp, at in positions.items()
                    if tp in seen.bounds
                },
            )
        await self._join()

    async def next(self, seen: Seen, limit: int | None, now_ms: int) -> Manifest:
        """The next batch of the partitions that are ours."""
        if self._failure is not None:
            raise self._failure
        self._check_topics(seen)
        return self._plan.next(seen, limit, now_ms)

    async def again(self, seen: Seen) -> Ranges:
        """What other members have not committed of the batch."""
        assert self._me.group is not None
        found = self._plan.again(await self._cluster.group_offsets(self._me.group), seen)
        left = self._plan.kept.size - sum(end - start for start, end in found.values())
        _log.info(
            "batch %d is repeated; other members read %d of its offsets",
            self._plan.kept.number,
            left,
        )
        return found

    async def is_done(self, batch: Manifest, now_ms: int) -> None:
        """Commit the batch, and let partitions go that the group has asked back."""
        self._plan.is_done(batch)
        await self.commit(now_ms)
        async with self._freed:
            self._freed.notify_all()

    async def commit(self, now_ms: int) -> None:
        """Commit what Spark has committed and the group has not."""
        del now_ms  # a group with members loses no offsets
        plan = self._plan
        offsets = dict(sorted(plan.to_commit.items()))
        if not offsets or self._consumer is None:
            return
        number = plan.kept.number
        notes = {
            tp: (at, str(self._me.note(number, plan.topic_ids.get(tp.topic))))
            for tp, at in offsets.items()
        }
        try:
            async with asyncio.timeout(_COMMIT_S):
                await self._consumer.commit(notes)
        except TimeoutError:
            names = ", ".join(map(shown, offsets))
            _log.warning("no commit within %s s; it is repeated for %s", _COMMIT_S, names)
        except Kip848Error as err:
            _log.warning("committing the progress of Spark failed, and is repeated: %s", err)
        else:
            plan.is_committed(offsets)

    async def leave(self) -> None:
        """Leave at once, without waiting for Spark's batch."""
        if self._polling is not None:
            self._polling.cancel()
        self._plan.gone(list(self._plan.owned))
        self._plan.in_hand = None
        async with self._freed:
            self._freed.notify_all()
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            await consumer.stop(timeout_ms=LEAVE_MS - 1_000)

    @property
    def kept(self) -> Manifest:
        """The last manifest."""
        return self._plan.kept

    @property
    def in_hand(self) -> Manifest | None:
        """The batch that Spark is processing."""
        return self._plan.in_hand

    def status(self, seen: Seen | None) -> dict[str, Any]:
        """The answer of the control channel."""
        consumer = self._consumer
        return {
            "partitions": len(self._plan.owned),
            "lag": lag_of(self._plan.owned, seen),
            "leaving": len(self._plan.leaving),
            "member_epoch": None if consumer is None else consumer.health().member_epoch,
        }

    # -- the membership ------------------------------------------------------------------------

    def _check_topics(self, seen: Seen) -> None:
        others = self._plan.created_again(seen)
        if others and self._options.fails_on_data_loss:
            raise DataLost(
                f"records are lost: topic {min(others)} was deleted and created again. Set "
                "failOnDataLoss=false to continue with the records that exist."
            )

    async def _join(self) -> None:
        """Start the member, and wait until its assignment is stable."""
        consumer: Consumer[Any, Any] = Consumer(
            **self._options.client_settings(),
            group_id=self._options.group_id,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        )
        if self._options.pattern is not None:
            consumer.subscribe(pattern=self._options.pattern, listener=self)
        else:
            consumer.subscribe(self._options.topics, listener=self)
        self._consumer = consumer
        await consumer.start()
        self._polling = asyncio.create_task(self._poll(consumer))
        try:
            await consumer.wait_stable(timeout_ms=_JOIN_MS)
        except TimeoutError:
            _log.warning(
                "the assignment was not stable within %d ms; starting with the current one",
                _JOIN_MS,
            )

    async def _poll(self, consumer: Consumer[Any, Any]) -> None:
        """Poll, to show that the application is alive. All partitions are paused."""
        pause_s = min(_POLL_S, consumer.config.max_poll_interval_ms / 4000)
        while True:
            try:
                await consumer.getmany(timeout_ms=0)
            except ConsumerClosed:
                return
            except Kip848Error as err:
                if not consumer.health().live:
                    self._failure = err
                    return
                _log.warning("the member continues after an error: %s", err)
            await asyncio.sleep(pause_s)

    # -- the rebalance listener ----------------------------------------------------------------

    async def on_partitions_assigned(self, assigned: set[TopicPartition], /) -> None:
        """New partitions: they are not fetched here, and begin by the rules of ``SharedPlan``."""
        if not assigned or self._consumer is None or self._me.group is None:
            return
        self._consumer.pause(*assigned)
        group = await self._cluster.group_offsets(self._me.group)
        seen = await self._look(self._plan.kept)
        try:
            self._check_topics(seen)
            self._plan.assigned(assigned, group, seen)
        except Kip848Error as err:  # raised by the next call of Spark
            self._failure = err
            return
        await self.commit(0)  # so that others and a restart begin there, too

    async def on_partitions_revoked(self, revoked: set[TopicPartition], /) -> None:
        """These go to other members, once Spark is done with them."""
        self._plan.asked_back(revoked)
        async with self._freed:
            await self._freed.wait_for(lambda: self._plan.is_free(revoked))
        await self.commit(0)
        self._plan.gone(revoked)

    async def on_partitions_lost(self, lost: set[TopicPartition], /) -> None:
        """Other members may have these already. Spark's batch continues, but is not committed for
        them."""
        self._plan.gone(lost)
        async with self._freed:
            self._freed.notify_all()
