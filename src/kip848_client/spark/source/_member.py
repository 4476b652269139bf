"""``MemberRunner``: a query that is a member of its group (``ownership=shared``).

The member sends heartbeats from its own loop while Spark's thread is busy. It never fetches:
executors read the ranges.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection
from typing import Any, Final

from kip848_client.consumer import Consumer
from kip848_client.core.partition_names import shown
from kip848_client.core.types import TopicPartition
from kip848_client.errors import ConsumerClosed, Kip848Error
from kip848_client.spark.source._runner import LEAVE_MS, SourceRunner
from kip848_client.spark.source.core._manifest import Manifest
from kip848_client.spark.source.core._options import SourceOptions
from kip848_client.spark.source.core._planning import DataLost, Seen, lag_of
from kip848_client.spark.source.core._sharing import Sharing

__all__ = ["MemberRunner"]

_log = logging.getLogger("kip848_client.spark")

_JOIN_MS: Final = 30_000
"""How long the first batch waits for the group to settle."""
_COMMIT_S: Final = 10.0
"""How long the next batch waits for a commit. A commit for a topic that was deleted, which the
group does not know yet, would be retried for a minute."""
_POLL_S: Final = 5.0
"""The longest time between two polls, which show that the application is alive."""


class MemberRunner(SourceRunner):
    """Reads the partitions that the group assigns; revokes them when Spark is done with them."""

    def __init__(self, options: SourceOptions) -> None:
        super().__init__(options)
        self._sharing = Sharing(self._planning)
        self._consumer: Consumer[Any, Any] | None = None
        self._polling: asyncio.Task[None] | None = None
        self._failure: Exception | None = None
        """The error that ended the membership."""
        self._is_new = False
        """Whether the query has no checkpoint yet."""
        self._at_first: Seen | None = None
        """The partitions when the member joined. Later ones are read from their start."""
        self._topic_ids: dict[str, str] = {}
        """The ids of the topics when their partitions were assigned."""

    # -- differs by ownership -------------------------------------------------------------------

    async def _first(self) -> Manifest:
        """At the group's offsets, which are unknown before partitions are assigned."""
        self._is_new = True
        return Manifest(0)

    def _planned(self, start: Manifest, seen: Seen, limit: int | None, now_ms: int) -> Manifest:
        if self._failure is not None:
            raise self._failure
        return self._sharing.next(start, self._of_the_same_topics(seen), limit, now_ms)

    def _of_the_same_topics(self, seen: Seen) -> Seen:
        """Leave out topics that were created again: until the group has noticed that, our
        partitions are those of the old topic. Raises ``DataLost``."""
        others = self._created_again(seen)
        if not others:
            return seen
        bounds = {tp: span for tp, span in seen.bounds.items() if tp.topic not in others}
        return Seen(bounds, seen.topic_ids)

    def _created_again(self, seen: Seen) -> set[str]:
        """Topics with other ids than when their partitions were assigned. Raises ``DataLost``."""
        others = {
            topic
            for topic, known in self._topic_ids.items()
            if seen.topic_ids.get(topic, known) != known
        }
        if others and self._options.fails_on_data_loss:
            raise DataLost(
                f"records are lost: topic {min(others)} was deleted and created again. Set "
                "failOnDataLoss=false to continue with the records that exist."
            )
        return others

    async def _repeated(self, planned: Manifest) -> Manifest:
        """The part that this member still owns: another member reads the rest."""
        seen = await self._look()
        committed = await self._committed(planned)
        found = self._sharing.repeated(planned, seen.topic_ids, committed)
        left = planned.size - found.size
        _log.info(
            "batch %d is repeated; other members read %d of its offsets", planned.number, left
        )
        return found

    async def _committed(self, planned: Manifest) -> list[TopicPartition]:
        """The partitions for which an earlier run of this query has committed the batch to the
        group: offsets are committed with the query's id, if it has one (option ``written``)."""
        query_id = self._options.written.query_id
        if not query_id:
            return []
        mine = await (await self._connected()).committed(with_text=query_id)
        return [tp for tp, end in planned.ends.items() if mine.get(tp, -1) >= end]

    def _take_done(self, batch: Manifest) -> None:
        self._sharing.done(batch)

    async def _commit(self) -> None:
        offsets = dict(sorted(self._sharing.to_commit.items()))
        if not offsets or self._consumer is None:
            return
        try:
            text = self._options.written.query_id
            said = {tp: (offset, text) for tp, offset in offsets.items()}
            async with asyncio.timeout(_COMMIT_S):
                await self._consumer.commit(said)
        except TimeoutError:
            names = ", ".join(map(shown, offsets))
            _log.warning("no commit within %s s; it is repeated for %s", _COMMIT_S, names)
        except Kip848Error as err:
            _log.warning("committing the progress of Spark failed, and is repeated: %s", err)
        else:
            self._sharing.committed(offsets)

    def _is_busy(self) -> bool:
        return self._sharing.in_hand is not None

    def _status(self) -> dict[str, Any]:
        in_hand = self._sharing.in_hand
        consumer = self._consumer
        return {
            "ownership": self._options.ownership,
            "batch": None if in_hand is None else in_hand.number,
            "ranges": None if in_hand is None else in_hand.to_json(),
            "partitions": len(self._sharing.owned),
            "lag": lag_of(self._sharing.owned, self._seen),
            "leaving": len(self._sharing.leaving),
            "member_epoch": None if consumer is None else consumer.health().member_epoch,
        }

    # -- the membership ------------------------------------------------------------------------

    async def _join(self) -> None:
        """Start the member, and wait until its assignment is stable."""
        self._at_first = await self._look()
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

    async def _leave(self) -> None:
        """Leave at once, without waiting for Spark's batch."""
        if self._polling is not None:
            self._polling.cancel()
        self._sharing.gone(list(self._sharing.owned))
        self._sharing.in_hand = None
        async with self._freed:
            self._freed.notify_all()
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            await consumer.stop(timeout_ms=LEAVE_MS - 1_000)

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
        """New partitions: they are not fetched here, and are planned from the group's offsets."""
        if not assigned or self._consumer is None or self._opened is None:
            return
        self._consumer.pause(*assigned)
        committed = await self._opened.committed()
        begun = await self._begun(assigned.difference(committed))
        positions = begun | {tp: committed[tp] for tp in assigned.intersection(committed)}
        seen = await self._look()
        try:
            self._created_again(seen)
        except DataLost as err:  # raised by the next call of Spark
            self._failure = err
        topics = {tp.topic for tp in assigned}
        self._topic_ids |= {name: found for name, found in seen.topic_ids.items() if name in topics}
        ahead = self._options.written.after(positions, seen.topic_ids)
        for tp, at in ahead.items():
            _log.info("%s: the output already has %d to %d", shown(tp), positions[tp], at)
        self._sharing.assigned(dict(sorted((positions | ahead).items())))
        # so that a restart starts there, too
        self._sharing.to_commit.update(begun | ahead)
        await self._commit()

    async def _begun(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Start positions of partitions without a committed offset: those of the options, if the
        query is new and they existed when it started; else their first record."""
        if not partitions or self._opened is None:
            return {}
        seen = await self._look()
        first = self._at_first if self._is_new else None
        places = {} if first is None else await self._opened.places(self._options.starting, first)
        return {tp: places.get(tp, seen.bounds[tp][0]) for tp in partitions if tp in seen.bounds}

    async def on_partitions_revoked(self, revoked: set[TopicPartition], /) -> None:
        """These go to other members, once Spark is done with them."""
        self._sharing.asked_back(revoked)
        async with self._freed:
            await self._freed.wait_for(lambda: self._sharing.is_free(revoked))
        await self._commit()
        self._sharing.gone(revoked)

    async def on_partitions_lost(self, lost: set[TopicPartition], /) -> None:
        """Other members may have these already. Spark's batch continues, but is not committed for
        them."""
        self._sharing.gone(lost)
        async with self._freed:
            self._freed.notify_all()
