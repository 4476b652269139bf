"""``ExclusiveOwnership``: a query that has all partitions to itself (``ownership=exclusive``).

Only Spark's checkpoint counts. With a ``kafka.group.id`` the query also commits its progress to the
group, which has no members, so that tools show its lag.
"""

from __future__ import annotations

import logging
from typing import Any, Final

from kip848_client.core.partition_names import shown
from kip848_client.errors import Kip848Error, UnknownMemberId
from kip848_client.spark.source._cluster import Cluster
from kip848_client.spark.source._ownership import Ownership, Ranges
from kip848_client.spark.source.core._begin import GroupOffset, Lineage
from kip848_client.spark.source.core._exclusive_plan import ExclusivePlan
from kip848_client.spark.source.core._manifest import Manifest
from kip848_client.spark.source.core._ownership import GroupState, upgraded
from kip848_client.spark.source.core._planning import Planning, Seen, lag_of

__all__ = ["ExclusiveOwnership"]

_log = logging.getLogger("kip848_client.spark")

_BESIDE_MEMBERS: Final = (
    "; the group has members, and this query reads all partitions in addition to them. Set "
    "ownership=shared to make it a member that shares the partitions"
)


class ExclusiveOwnership(Ownership):
    """Reads all partitions that the options name, even if other consumers read them, too."""

    def __init__(self, cluster: Cluster, planning: Planning, me: Lineage, kept: Manifest) -> None:
        self._cluster = cluster
        self._me = me
        self._plan = ExclusivePlan(planning, me, kept)
        self._group: dict[Any, GroupOffset] = {}
        """What the group had committed when this run began."""
        self._has_warned = False

    async def take_over(self, seen: Seen, *, is_repeated: bool) -> None:
        """Look the group up. A member's checkpoint counts by a member's rules once more."""
        del is_repeated  # the checkpoint counts in any case
        plan, kept = self._plan, self._plan.kept
        name = kept.group if kept.ownership == "shared" and kept.group else self._me.group
        if name is None:
            return
        self._group = await self._cluster.group_offsets(name)
        plan.kept = upgraded(kept, seen, GroupState(offsets=self._group))
        if kept.ownership == "shared":
            plan.take_over(self._group, seen)
        if name != self._me.group:
            self._group = {}

    async def next(self, seen: Seen, limit: int | None, now_ms: int) -> Manifest:
        """The next batch of all partitions."""
        return self._plan.next(seen, limit, now_ms)

    async def again(self, seen: Seen) -> Ranges:
        """All of the batch, if the records still exist."""
        return self._plan.again(self._group, seen)

    async def is_done(self, batch: Manifest, now_ms: int) -> None:
        """Commit the batch's positions, so that tools show the lag."""
        self._plan.is_done(batch)
        self._warn_of_others()
        await self.commit(now_ms)

    def _warn_of_others(self) -> None:
        if self._has_warned:
            return
        self._has_warned = True
        for tp, (theirs, ours) in self._plan.overwritten(self._group).items():
            _log.warning(
                "group %s has offset %d for %s, which this query did not commit; the checkpoint "
                "counts, and %d replaces it",
                self._me.group,
                theirs,
                shown(tp),
                ours,
            )

    async def commit(self, now_ms: int) -> None:
        """Commit what the group lacks; all positions once a day."""
        group = self._me.group
        news = self._plan.to_commit(now_ms)
        if group is None or not news:
            return
        ids, number = self._plan.kept.topic_ids, self._plan.kept.number
        notes = {tp: (at, self._me.note(number, ids.get(tp.topic))) for tp, at in news.items()}
        try:
            await self._cluster.commit(group, notes)
        except Kip848Error as err:
            _log.warning(
                "committing the progress of Spark to group %s failed: %s%s",
                group,
                err,
                _BESIDE_MEMBERS if isinstance(err.__cause__, UnknownMemberId) else "",
            )
        else:
            self._plan.is_committed(news, now_ms)

    async def leave(self) -> None:
        """The query is not a member."""

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
        plan = self._plan
        at = plan.done if plan.in_hand is None else plan.in_hand.ends
        return {"partitions": 0 if seen is None else len(seen.bounds), "lag": lag_of(at, seen)}
