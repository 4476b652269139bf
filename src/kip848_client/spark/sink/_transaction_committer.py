"""Performs the commands of ``_two_phase_commit``, as the one driver of the query.

It lives in the driver, during one commit or abort of Spark's.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final

from kip848_client.admin._transactions import (
    DescribedTransaction,
    TransactionAdmin,
    TransactionToEnd,
)
from kip848_client.core.types import TopicPartition
from kip848_client.errors import Kip848Error, ProducerFenced, RequestTimedOut, TransactionAborted
from kip848_client.producer import Producer
from kip848_client.spark._connecting import connected
from kip848_client.spark.sink._options import SinkOptions
from kip848_client.spark.sink.core._decisions import (
    Decision,
    Kept,
    Participant,
    kept_in,
    texts_of,
)
from kip848_client.spark.sink.core._transactional_ids import is_of
from kip848_client.spark.sink.core._two_phase_commit import (
    AbortStale,
    Batch,
    BatchRefused,
    Command,
    Decide,
    Describe,
    End,
    FenceDriver,
    ListOpen,
    Read,
    Seen,
    Steps,
    TransactionStatus,
    Warn,
)

__all__ = ["carry_out", "status_of"]

_log = logging.getLogger("kip848_client.spark")

_ABORTED: Final = frozenset({"Empty", "PrepareAbort", "CompleteAbort", "PrepareEpochFence", "Dead"})
_COMMITTED: Final = frozenset({"PrepareCommit", "CompleteCommit"})
_DECIDES_WITHIN_MS: Final = 60_000
"""The driver's own transaction contains only a decision."""


def carry_out(options: SinkOptions, batch: Batch, steps: Steps, topics: Sequence[str]) -> None:
    """Perform the steps of a commit or an abort. ``topics`` have the partitions for the decision.

    Raises what the steps raise, and errors of brokers and connections. After the latter the outcome
    is unknown until Spark's next attempt."""
    asyncio.run(_carry_out(options, batch, steps, topics))


async def _carry_out(
    options: SinkOptions, batch: Batch, steps: Steps, topics: Sequence[str]
) -> None:
    committer = _TransactionCommitter(options, batch, topics)
    answer: Any = None
    try:
        await committer.open()
        while True:
            try:
                command = steps.send(answer)
            except StopIteration:
                return
            answer = await committer.perform(command)
    finally:
        steps.close()
        await committer.close()


class _TransactionCommitter:
    def __init__(self, options: SinkOptions, batch: Batch, topics: Sequence[str]) -> None:
        self._batch = batch
        self._topics = topics
        self._max_block_ms = options.max_block_ms
        settings = options.client_settings()
        settings["transaction_timeout_ms"] = _DECIDES_WITHIN_MS
        self._admin_settings: dict[str, Any] = options.admin_settings()
        self._driver_settings: dict[str, Any] = {**settings, "transactional_id": batch.name}
        self._admin, self._driver = self._new_admin(), self._new_driver()

    def _new_admin(self) -> TransactionAdmin:
        return TransactionAdmin(**self._admin_settings)

    def _new_driver(self) -> _Driver:
        return _Driver(**self._driver_settings)

    async def open(self) -> None:
        """Connect."""
        self._admin = await connected(self._new_admin, "max.block.ms", self._max_block_ms)

    async def close(self) -> None:
        """Disconnect."""
        try:
            await self._driver.stop()
        finally:
            await self._admin.stop()

    async def perform(self, command: Command) -> Any:
        """Perform a command, and return its answer."""
        match command:
            case FenceDriver():
                # Each attempt fences all drivers before it, including those of earlier attempts.
                self._driver = await connected(self._new_driver, "max.block.ms", self._max_block_ms)
                return None
            case Read():
                return await self._read()
            case Describe(participants):
                return await self._describe(participants)
            case Decide(decision, kept):
                return await self._decide(decision, kept)
            case End(participants, commits):
                return await self._end(participants, commits=commits)
            case ListOpen():
                return await self._open_now()
            case AbortStale(names):
                return await self._abort_stale(names)
            case Warn(text):
                _log.warning("%s: %s", self._batch.name, text)
                return None

    async def _read(self) -> Kept:
        found = await self._admin.list_group_offsets(self._batch.name, require_stable=True)
        return kept_in(self._batch.name, {tp: each.metadata for tp, each in found.items()})

    async def _describe(self, participants: Collection[Participant]) -> dict[Participant, Seen]:
        if not participants:
            return {}
        found = await self._admin.describe_transactions(
            [each.transactional_id for each in participants]
        )
        now_ms = int(time.time() * 1000)
        return {each: _seen(each, found[each.transactional_id], now_ms) for each in participants}

    async def _decide(self, decision: Decision, kept: Kept) -> None:
        texts = texts_of(self._batch.name, decision)
        try:
            async with asyncio.timeout(self._driver.config.max_block_ms / 1000):
                there = await self._places(len(texts))
                places = {tp: (decision.batch, text) for tp, text in zip(there, texts, strict=True)}
                superseded = {tp: (decision.batch, "") for tp in kept.places if tp not in places}
                await self._driver.write({**superseded, **places}, self._batch.name)
        except TimeoutError:
            raise RequestTimedOut(
                f"batch {decision.batch}: the decision could not be committed to group "
                f"{self._batch.name} within kafka.max.block.ms"
            ) from None
        except (ProducerFenced, TransactionAborted) as err:
            raise BatchRefused(
                f"batch {decision.batch} was not written: the decision could not be committed: "
                f"{err}. FENCED or EPOCH means that another driver has taken over "
                f"kafka.transactional.id={self._batch.name}: two queries must not share it, nor a "
                "checkpoint"
            ) from err

    async def _places(self, count: int) -> list[TopicPartition]:
        """Partitions for a decision: brokers store offsets only for those that exist."""
        found: list[TopicPartition] = []
        for topic in self._topics:
            there = sorted(await self._driver.partitions_for(topic))
            found.extend(TopicPartition(topic, partition) for partition in there)
            if len(found) >= count:
                return found[:count]
        raise BatchRefused(
            f"batch {self._batch.number} was not written: it has {len(self._batch.participants)} "
            f"tasks, too many for the metadata of the {len(found)} partitions of "
            f"{', '.join(self._topics)}; use coalesce() to write with fewer tasks"
        )

    async def _end(
        self, participants: Collection[Participant], *, commits: bool
    ) -> dict[Participant, TransactionStatus]:
        """End these transactions. For those that are refused, the described state counts."""
        failed = await self._admin.end_transactions(
            [
                TransactionToEnd(each.transactional_id, each.producer_id, each.epoch, each.is_v2)
                for each in participants
            ],
            commits=commits,
        )
        statuses = dict.fromkeys(
            participants, TransactionStatus.COMMITTED if commits else TransactionStatus.ABORTED
        )
        refused = [each for each in participants if each.transactional_id in failed]
        for each, seen in (await self._describe(refused)).items():
            if (
                seen.status is TransactionStatus.OPEN and commits
            ):  # the next attempt can still commit it
                raise failed[each.transactional_id]
            if seen.status is not TransactionStatus.OPEN:
                statuses[each] = seen.status
            if commits:
                error = failed[each.transactional_id]
                _log.warning("%s was not committed: %s", each.transactional_id, error)
        return statuses

    async def _open_now(self) -> dict[str, Seen]:
        try:
            names = _ours(self._batch.name, await self._admin.open_transactions())
            found = await self._admin.describe_transactions(names) if names else {}
        except Kip848Error as err:
            _log.warning("%s: listing open transactions failed: %s", self._batch.name, err)
            return {}
        return {
            name: Seen(TransactionStatus.OPEN, each.started_ms)
            for name, each in found.items()
            if each is not None and each.state == "Ongoing"
        }

    async def _abort_stale(self, names: Iterable[str]) -> None:
        try:
            found = await self._admin.describe_transactions(list(names))
            still = {
                name: each
                for name, each in found.items()
                if each is not None and each.state == "Ongoing"
            }
            failed = await self._admin.fence(still) if still else {}
        except Kip848Error as err:
            _log.warning("%s: open transactions were not aborted: %s", self._batch.name, err)
            return
        for name, error in failed.items():
            _log.warning("%s was not aborted; it will time out: %s", name, error)


class _Driver(Producer[bytes, bytes]):
    """The only driver of a query: a later one fences it."""

    async def write(self, offsets: dict[TopicPartition, tuple[int, str]], group: str) -> None:
        """Commit offsets of a group without members, all or nothing."""
        self._unfenced.add(group)  # the transactional id is the fence
        async with self.transaction() as txn:
            await txn.send_offsets(group, offsets)


def _ours(name: str, found: Iterable[str]) -> list[str]:
    return [each for each in found if is_of(name, None, each)]


def _seen(each: Participant, found: DescribedTransaction | None, now_ms: int) -> Seen:
    if found is None:
        return Seen(TransactionStatus.UNKNOWN)
    status = status_of(each, found)
    left_ms = found.started_ms + found.timeout_ms - now_ms
    return Seen(status, found.started_ms, left_ms)


def status_of(each: Participant, found: DescribedTransaction) -> TransactionStatus:
    """The state of a transaction, from its coordinator's description. With transactions of version
    2, its end raises the epoch; any other epoch or producer is another transaction."""
    is_its = found.producer_id == each.producer_id
    if found.state in _COMMITTED:
        is_its = is_its and found.epoch in (each.epoch, each.epoch + 1)
        return TransactionStatus.COMMITTED if is_its else TransactionStatus.UNKNOWN
    if found.state == "Ongoing":
        is_its = is_its and found.epoch == each.epoch
        return TransactionStatus.OPEN if is_its else TransactionStatus.ABORTED
    return TransactionStatus.ABORTED if found.state in _ABORTED else TransactionStatus.UNKNOWN
