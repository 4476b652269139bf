"""``ExclusiveRunner``: a query that has all partitions to itself (``ownership=exclusive``).

Only Spark's checkpoint counts. With a ``kafka.group.id`` the query also commits its progress to the
group, which has no members, so that tools show its lag.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from kip848_client.core.types import TopicPartition
from kip848_client.errors import Kip848Error, UnknownMemberId
from kip848_client.spark.source._runner import SourceRunner
from kip848_client.spark.source.core._manifest import Manifest
from kip848_client.spark.source.core._options import SourceOptions
from kip848_client.spark.source.core._ownership import check_positions
from kip848_client.spark.source.core._planning import Seen, lag_of

__all__ = ["ExclusiveRunner"]

_log = logging.getLogger("kip848_client.spark")

_BESIDE_MEMBERS: Final = (
    "; the group has members, and this query reads all partitions in addition to them. Set "
    "ownership=shared to make it a member that shares the partitions"
)


class ExclusiveRunner(SourceRunner):
    """Reads all partitions that the options name, even if other consumers read them, too."""

    def __init__(self, options: SourceOptions) -> None:
        super().__init__(options)
        self._in_hand: Manifest | None = None
        """The batch that Spark is processing."""
        self._done: Mapping[TopicPartition, int] = {}
        """The positions after the batches that Spark has committed."""
        self._committed: Mapping[TopicPartition, int] = {}
        """The positions that were committed to the group."""

    async def _join(self) -> None:
        """The query is not a member."""

    async def _leave(self) -> None:
        """The query is not a member."""

    async def _first(self) -> Manifest:
        """The offsets that the group has committed, else those of the options. Offsets and times
        in the options take precedence over the group's."""
        cluster = await self._connected()
        seen = await self._look()
        places = await cluster.places(self._options.starting, seen)
        if self._options.starting.everywhere is not None:
            committed = await cluster.committed()
            places |= {tp: at for tp, at in committed.items() if tp in places}
        return Manifest(0, {tp: (at, at) for tp, at in places.items()}, seen.topic_ids)

    def _planned(self, start: Manifest, seen: Seen, limit: int | None, now_ms: int) -> Manifest:
        check_positions(start, self._options, seen.bounds)
        found = self._planning.next(start, seen, limit, now_ms)
        if found is not start:
            self._in_hand = found
        return found

    async def _repeated(self, planned: Manifest) -> Manifest:
        """All of it, if the records still exist."""
        found = self._planning.check(planned, await self._look())
        self._warn_of_losses()
        self._in_hand = found
        return found

    def _take_done(self, batch: Manifest) -> None:
        if self._in_hand is not None and batch.number >= self._in_hand.number:
            self._in_hand = None
        if batch.number:
            self._done = batch.ends

    async def _commit(self) -> None:
        done = self._done  # another batch may finish before this commit
        news = {tp: end for tp, end in done.items() if self._committed.get(tp) != end}
        if self._options.group_id is None or not news:
            return
        cluster = await self._connected()
        try:
            await cluster.commit(news)
        except Kip848Error as err:
            _log.warning(
                "committing the progress of Spark to group %s failed: %s%s",
                self._options.group_id,
                err,
                _BESIDE_MEMBERS if isinstance(err.__cause__, UnknownMemberId) else "",
            )
        else:
            self._committed = done

    def _is_busy(self) -> bool:
        return self._in_hand is not None

    def _status(self) -> dict[str, Any]:
        in_hand = self._in_hand
        at = self._done if in_hand is None else in_hand.ends
        return {
            "ownership": self._options.ownership,
            "batch": None if in_hand is None else in_hand.number,
            "ranges": None if in_hand is None else in_hand.to_json(),
            "partitions": len(self._seen.bounds) if self._seen is not None else 0,
            "lag": lag_of(at, self._seen),
        }
