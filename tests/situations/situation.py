"""What every situation has: a topic that is written to, a group that reads it, and a
verdict."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager
from typing import Any, Final

from kip848_client import Admin, Consumer, TopicPartition
from kip848_client.admin import NewTopic
from tests.integration.cluster import eventually
from tests.situations.diary import Entry, Verdict, What, judged
from tests.situations.members import Application, Feed

__all__ = ["SESSION_MS", "Situation"]

SESSION_MS: Final = 15_000
"""So long that a busy machine puts nobody out. Where the end of a session is waited for, the
situation takes another one."""

_PARTITIONS: Final = 4
_WAIT_S: Final = 60.0


class Situation:
    """``group`` reads ``topic``; both have the situation's ``name``."""

    def __init__(
        self, bootstrap: str, admin: Admin, name: str, replicas: int, *, by_name: bool
    ) -> None:
        self.bootstrap = bootstrap
        self.admin = admin
        self.replicas = replicas
        self.by_name = by_name
        """The coordinator takes offsets by the names of topics alone."""
        self.topic = self.group = name
        self.partitions = _PARTITIONS
        self.entries: list[Entry] = []
        self.applications: list[Application] = []
        """Those that run, and those that ended."""
        self.feed = Feed(bootstrap, self.of_topic(self.topic, range(_PARTITIONS)))
        self._running: list[Application] = []

    @staticmethod
    def of_topic(topic: str, numbers: Collection[int]) -> list[TopicPartition]:
        """Partitions."""
        return [TopicPartition(topic, number) for number in numbers]

    async def create(self, topic: str, partitions: int) -> None:
        """A topic with a replica on each broker."""
        await self.admin.create_topics([NewTopic(topic, partitions, self.replicas)])

    @asynccontextmanager
    async def fed(self, **configs: Any) -> AsyncGenerator[Situation]:
        """The topic is there, with records to read from the beginning on, and more are written for
        the length of the block. ``configs`` are the group's, with ``_`` for ``.``."""
        settings = {"consumer_session_timeout_ms": SESSION_MS, **configs}
        changes = {name.replace("_", "."): str(value) for name, value in settings.items()}
        await self.admin.alter_group_configs({self.group: changes})
        await self.create(self.topic, self.partitions)
        try:
            async with self.feed:
                yield self
        finally:
            for each in list(self._running):
                await self.stop(each)

    async def start(self, name: str, *topics: str, **settings: Any) -> Application:
        """One more application of the group. ``pattern`` is what it subscribes to, if not topics.
        Raises what its start does."""
        pattern = settings.pop("pattern", None)
        settings = {"bootstrap_servers": self.bootstrap, "group_id": self.group, **settings}
        app = Application(name, self.entries, **settings)
        self.applications.append(app)
        self._running.append(app)
        return await app.start(() if pattern else topics or (self.topic,), pattern)

    async def stop(self, app: Application) -> None:
        """End one in good order."""
        self._running.remove(app)
        await app.stop()

    async def crash(self, app: Application) -> None:
        """End one as a crash does."""
        self._running.remove(app)
        found = await self.admin.list_group_offsets(self.group)
        await app.crash({tp: each.offset for tp, each in found.items()})

    async def shared(self, *sizes: int) -> None:
        """Return when the running applications have so many partitions, whoever has how many."""

        def are_shared() -> bool:
            found = [len(each.consumer.assignment()) for each in self._running]
            return sorted(found) == sorted(sizes)

        await eventually(are_shared, _WAIT_S)

    async def flows(self, times: int = 1) -> None:
        """Return when something new was read of each partition that is written to, so often."""
        for _ in range(times):
            seen = len(self.entries)
            wanted = set(self.feed.targets)

            def has_flown(seen: int = seen, wanted: set[TopicPartition] = wanted) -> bool:
                new = self.entries[seen:]
                return wanted <= {each.tp for each in new if each.what is What.READ}

            await eventually(has_flown, _WAIT_S)

    async def finish(self, written: Collection[bytes] | None = None) -> Verdict:
        """Write no more, wait until all that was ``written`` is read, end all in good order, and
        judge."""
        await self.feed.stop()
        expected = self.feed.written if written is None else written
        assert expected

        def is_read() -> bool:
            return set(expected) <= {each.value for each in self.entries}

        with contextlib.suppress(AssertionError):  # the verdict says what is lost
            await eventually(is_read, _WAIT_S)
        for each in list(self._running):
            await self.stop(each)
        await self._is_committed()
        return judged(self.entries, expected)

    async def _is_committed(self) -> None:
        """What those that ended in good order have read last is committed."""
        last = {
            each.tp: each.offset + 1
            for each in self.entries
            if each.what is What.READ and each.tp in self.feed.targets
        }
        found = await self.admin.list_group_offsets(self.group)
        assert {tp: each.offset for tp, each in found.items() if tp in last} == last

    async def committed(self, group: str) -> int:
        """How many records of the topic a group has committed, in all."""
        found = await self.admin.list_group_offsets(group, require_stable=True)
        return sum(each.offset for each in found.values())

    async def content(self, topic: str, **settings: Any) -> list[bytes]:
        """All values of a topic that has the situation's number of partitions."""
        partitions = self.of_topic(topic, range(self.partitions))
        consumer: Consumer[Any, Any] = Consumer(
            bootstrap_servers=self.bootstrap, auto_offset_reset="earliest", **settings
        )
        values: list[bytes] = []
        async with consumer:
            consumer.assign(partitions)
            ends = await consumer.end_offsets(partitions)
            for tp, end in ends.items():
                while await consumer.position(tp) < end:
                    found = await consumer.getmany(tp, timeout_ms=1_000)
                    values += [record.value for each in found.values() for record in each]
        return values

    def told(self) -> str:
        """What the applications have seen, for a failure message."""
        return "\n".join(
            f"{each.name}: {len(each.consumer.assignment()) if each in self._running else 'ended'}"
            f" {each.callbacks[-6:]} {each.errors[-3:]}"
            for each in self.applications
        )
