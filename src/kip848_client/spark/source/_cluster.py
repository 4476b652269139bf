"""A query's requests to brokers: partitions, their bounds, start positions, the group's offsets."""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Collection, Mapping
from typing import Any, Final

from kip848_client.admin import EARLIEST, LATEST, Admin, CommittedOffset, TopicDescription
from kip848_client.config import client_settings
from kip848_client.core.partition_names import shown
from kip848_client.core.types import TopicPartition
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import (
    AdminFailed,
    BrokerError,
    ConfigError,
    GroupIdNotFound,
    Kip848Error,
)
from kip848_client.spark._connecting import connected
from kip848_client.spark.source.core._begin import CommitNote, GroupOffset
from kip848_client.spark.source.core._offset_limits import BEGIN, OffsetRangeLimit
from kip848_client.spark.source.core._options import SourceOptions
from kip848_client.spark.source.core._ownership import GroupState
from kip848_client.spark.source.core._planning import DataLost, Seen

__all__ = ["Cluster"]

_log = logging.getLogger("kip848_client.spark")

_GONE_S: Final = 2.0
"""How long a known topic must be missing before it counts as deleted."""
_PAUSE_S: Final = 0.2


class Cluster:
    """The brokers, for a query that is not a member. Use it in one event loop.

    It needs no consumer: each query starts a process, and importing a consumer takes half a
    second.
    """

    def __init__(self, options: SourceOptions) -> None:
        self._options = options
        self._isolation = options.properties.get("isolation.level", "read_uncommitted")
        self._settings = _of_admin(options)
        self._admin = Admin(**self._settings)
        self._known: set[str] = set()
        """Topics that existed at the last look."""
        self._missing: set[str] = set()
        """Topics that did not exist, which was logged."""
        self._has_warned = False
        """Whether it was logged that the pattern matches nothing."""
        self._last: Seen | None = None

    async def start(self) -> None:
        """Connect, within ``default.api.timeout.ms``. Raises as ``Admin.start`` does."""
        self._admin = await connected(
            lambda: Admin(**self._settings), "default.api.timeout.ms", self._options.api_timeout_ms
        )

    async def stop(self) -> None:
        """Disconnect."""
        await self._admin.stop()

    async def seen(self) -> Seen:
        """The partitions that the options name, with their bounds. Raises ``ConfigError`` for a
        topic or a partition that does not exist, ``DataLost`` for a topic that existed before.
        With ``failOnDataLoss=false``, a missing topic has no partitions."""
        last = self._last
        early = None if last is None else asyncio.create_task(self._bounds(last.bounds))
        try:
            described = await self._described()
            ids = {topic: found.topic_id for topic, found in sorted(described.items())}
            partitions = self._read_of(described)
            is_as_before = last is not None and (ids, partitions) == (
                last.topic_ids,
                list(last.bounds),
            )
            # An id is never reused: offsets that were fetched meanwhile belong to these topics.
            bounds = await (early if early and is_as_before else self._bounds(partitions))
        finally:
            if early is not None:
                early.cancel()
                early.add_done_callback(_retrieve)
        epochs = {
            TopicPartition(topic, each.partition): each.leader_epoch
            for topic, found in described.items()
            for each in found.partitions
        }
        self._last = Seen(bounds, ids, {tp: epochs[tp] for tp in bounds if tp in epochs})
        return self._last

    def _read_of(self, described: Mapping[str, TopicDescription]) -> list[TopicPartition]:
        """The partitions of these topics that are read, sorted. Raises ``ConfigError``."""
        there = {
            TopicPartition(topic, each.partition)
            for topic, found in described.items()
            for each in found.partitions
        }
        missing = sorted(set(self._options.assigned).difference(there))
        if missing:
            raise ConfigError(f"assign names {shown(missing[0])}, which does not exist")
        return sorted(self._options.assigned or there)

    async def _bounds(
        self, partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, tuple[int, int]]:
        begins, ends = await asyncio.gather(
            self._offsets(dict.fromkeys(partitions, EARLIEST)),
            self._offsets(dict.fromkeys(partitions, LATEST)),
        )
        # two requests: a partition trimmed between them has its end before its start
        return {tp: (begins[tp], max(begins[tp], ends[tp])) for tp in partitions}

    async def _offsets(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """The first offset at each time; -1 if there is no record at that time or later."""
        if not times:
            return {}
        found = await self._admin.list_offsets(times, isolation_level=self._isolation)
        return {tp: each.offset for tp, each in found.items()}

    async def _described(self) -> dict[str, TopicDescription]:
        """The topics that exist. A broker that has just started may not know all: known topics are
        looked up again before they count as deleted."""
        until = time.monotonic() + _GONE_S
        while True:
            topics = await self._topics()
            found, refused = await self._ask_for(topics)
            gone = self._known.difference(found)
            missing = gone.union(refused).difference(self._missing)
            if not missing:
                break
            if time.monotonic() > until or not gone:
                self._lost(sorted(gone), refused)
                break
            await asyncio.sleep(_PAUSE_S)
        self._known, self._missing = set(found), missing.union(self._missing).difference(found)
        return found

    async def _ask_for(
        self, topics: list[str]
    ) -> tuple[dict[str, TopicDescription], dict[str, Kip848Error]]:
        """The topics that exist, and the errors of those that do not. Raises all other errors."""
        if not topics:
            return {}, {}
        try:
            return await self._admin.describe_topics(topics), {}
        except AdminFailed as err:
            if not all(_is_unknown(each) for each in err.errors.values()):
                raise
            return dict(err.done), dict(err.errors)

    def _lost(self, gone: list[str], refused: Mapping[str, Kip848Error]) -> None:
        """Raise or log, depending on ``failOnDataLoss``."""
        if self._options.fails_on_data_loss and gone:
            raise DataLost(
                f"records are lost: topic {gone[0]} was deleted while the query ran. Set "
                "failOnDataLoss=false to continue with the records that exist."
            )
        if self._options.fails_on_data_loss:
            name = min(refused)
            raise ConfigError(f"topic {name} does not exist: {refused[name]}") from refused[name]
        for name in sorted({*gone, *refused}.difference(self._missing)):
            _log.warning("topic %s does not exist (any more); the query continues", name)

    async def _topics(self) -> list[str]:
        if self._options.pattern is not None:
            return await self._matched(self._options.pattern)
        if self._options.assigned:
            return sorted({tp.topic for tp in self._options.assigned})
        return list(self._options.topics)

    async def _matched(self, pattern: str) -> list[str]:
        """The topics whose whole names match, as brokers match for members of a group. A pattern
        without a match is logged once, because Spark's own source also matches part of a name."""
        names = [each.name for each in await self._admin.list_topics() if not each.is_internal]
        wanted = re.compile(pattern)
        found = sorted(name for name in names if wanted.fullmatch(name))
        if not found and not self._known and not self._has_warned:
            self._has_warned = True
            inside = sorted(name for name in names if wanted.search(name))
            hint = f"; .*({pattern}).* also matches {inside[0]}" if inside else ""
            _log.warning(
                "subscribePattern=%r matches no topic; it must match whole names%s", pattern, hint
            )
        return found

    async def places(self, limit: OffsetRangeLimit, seen: Seen) -> dict[TopicPartition, int]:
        """The offset in each partition for a limit of the options. Raises ``ConfigError``."""
        bounds = seen.bounds
        if limit.everywhere is not None:
            side = 0 if limit.everywhere == BEGIN else 1
            return {tp: span[side] for tp, span in bounds.items()}
        if limit.time_ms is not None or limit.times:
            return await self._at_times(limit, seen)
        _check_complete(limit.option, limit.offsets, bounds)
        places: dict[TopicPartition, int] = {}
        for tp, (begin, end) in bounds.items():
            wanted = _place(limit.offsets[tp], begin, end)
            places[tp] = found = min(max(wanted, begin), end)
            if found != wanted:
                self._outside(limit.option, tp, wanted, (begin, end))
        return places

    def _outside(self, option: str, tp: TopicPartition, wanted: int, span: tuple[int, int]) -> None:
        """An offset of the options does not exist (any more). Raises ``ConfigError``, unless
        ``failOnDataLoss=false``: then the nearest one is used, which is logged."""
        text = (
            f"{option}: offset {wanted} is outside of {shown(tp)}, which has {span[0]} to {span[1]}"
        )
        if self._options.fails_on_data_loss:
            raise ConfigError(f"{text}. Set failOnDataLoss=false to use the nearest offset.")
        _log.warning("%s; using the nearest offset", text)

    async def _at_times(self, limit: OffsetRangeLimit, seen: Seen) -> dict[TopicPartition, int]:
        times = limit.times or dict.fromkeys(seen.bounds, limit.time_ms or 0)
        _check_complete(limit.option, times, seen.bounds)
        found = await self._offsets(times)
        places: dict[TopicPartition, int] = {}
        for tp, (_, end) in seen.bounds.items():
            first = found[tp]
            if first < 0 and not limit.later_is_end:
                raise ConfigError(
                    f"{limit.option}: {shown(tp)} has no record at or after {times[tp]}; set "
                    "startingOffsetsByTimestampStrategy=latest to start at its end"
                )
            places[tp] = end if first < 0 else min(first, end)
        return places

    async def epoch_ends(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Where these leader epochs end, for those that the leaders know (KIP-320)."""
        if not epochs:
            return {}
        found = await self._admin.list_epoch_ends(epochs)
        return {tp: end for tp, end in found.items() if end >= 0}

    async def group_state(self, group: str | None) -> GroupState:
        """What a group has; nothing without a group, or for one that does not exist."""
        if group is None:
            return GroupState()
        offsets = await self.group_offsets(group)
        return GroupState(await self._has_members(group), offsets)

    async def group_offsets(self, group: str) -> dict[TopicPartition, GroupOffset]:
        """What a group has committed."""
        found = await self._admin.list_group_offsets(group)
        return {
            tp: GroupOffset(each.offset, CommitNote.of(each.metadata)) for tp, each in found.items()
        }

    async def _has_members(self, group: str) -> bool:
        try:
            described = await self._admin.describe_groups([group])
        except AdminFailed as err:
            if all(isinstance(each, GroupIdNotFound) for each in err.errors.values()):
                return False
            raise
        return bool(described[group].members)

    async def commit(
        self, group: str, offsets: Mapping[TopicPartition, tuple[int, CommitNote]]
    ) -> None:
        """Commit to a group, which must not have members. Raises ``AdminFailed`` if it has."""
        said = {tp: CommittedOffset(at, metadata=str(note)) for tp, (at, note) in offsets.items()}
        await self._admin.alter_group_offsets(group, said)


def _retrieve(task: asyncio.Task[Any]) -> None:
    """Retrieve the error of a task that is not awaited, so that asyncio does not log it."""
    if not task.cancelled():
        task.exception()


def _of_admin(options: SourceOptions) -> dict[str, Any]:
    return {
        **client_settings(options.properties),
        "bootstrap_servers": options.properties["bootstrap.servers"],
        "default_api_timeout_ms": options.api_timeout_ms,
    }


def _is_unknown(err: Kip848Error) -> bool:
    return isinstance(err, BrokerError) and err.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _check_complete(
    option: str, said: Collection[TopicPartition], there: Collection[TopicPartition]
) -> None:
    """Spark's rule: an option by partition must have all partitions."""
    missing = sorted(set(there).difference(said))
    unknown = sorted(set(said).difference(there))
    if missing:
        raise ConfigError(
            f"{option} lacks {shown(missing[0])}: it must have all partitions, with -1 for the end "
            "and -2 for the beginning"
        )
    if unknown:
        raise ConfigError(f"{option} names {shown(unknown[0])}, which is not read")


def _place(said: int, begin: int, end: int) -> int:
    if said < 0:
        return begin if said == BEGIN else end
    return said
