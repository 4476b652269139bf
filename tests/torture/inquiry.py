"""What brokers say when a run does not come to its end: groups, transactions, producers, leaders.

Brokers are asked directly, and each one for itself: they need not agree.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from kip848_client import AdminFailed, Kip848Error, TopicPartition
from kip848_client.admin import LATEST, Admin
from kip848_client.error_codes import error_name
from tests.support.plain_message import message
from tests.torture.brokers import NODES, OFFSETS, UNREACHABLE, Brokers, committed
from tests.torture.hanging import Coordinated, Open, told_open
from tests.torture.looking import LAST
from tests.torture.names import GROUP, IN, OUT, PARTITIONS, READERS
from tests.torture.scene import Scene

__all__ = ["ASKED", "Inquiry", "inquest", "inquired"]

ASKED: Final = "asked.txt"
"""What brokers said when it did not come to an end."""

_ADMIN_MS: Final = 20_000
_ASK_S: Final = 10.0
_PLACES: Final = [(OUT, number) for number in range(PARTITIONS)] + [(OFFSETS, 0)]
"""Where transactions are."""
_NO_TRANSACTION: Final = -1


@dataclass(slots=True)
class Inquiry:
    """What was found."""

    lines: list[str] = field(default_factory=list)
    open: list[Open] = field(default_factory=list)
    coordinated: list[Coordinated] = field(default_factory=list)

    @property
    def transactions(self) -> list[str]:
        """A line for each that is open in a partition. Followers are asked as well."""
        return told_open(dict.fromkeys(self.open), self.coordinated)

    def __str__(self) -> str:
        return "\n".join([time.ctime(), *self.lines, *self.transactions, ""])


async def inquired(brokers: Brokers, transactional_ids: Sequence[str]) -> Inquiry:
    """Ask all that can be asked; what cannot be told is told, too."""
    found = Inquiry()
    steps: list[tuple[str, Callable[[], Awaitable[None]]]] = [
        ("groups", lambda: _groups(brokers, found)),
        ("offsets", lambda: _offsets(brokers, found)),
        *(
            (f"broker {each}", _transactions(brokers, each, transactional_ids, found))
            for each in NODES
        ),
        *((f"broker {each}", _producers(brokers, each, found)) for each in NODES),
    ]
    for what, ask in steps:
        try:
            async with asyncio.timeout(_ASK_S + _ADMIN_MS / 1000):
                await ask()
        except (*UNREACHABLE, Kip848Error, TimeoutError) as err:
            found.lines.append(f"{what}: {type(err).__name__}: {err}")
    return found


async def inquest(scene: Scene, folder: Path) -> list[str]:
    """Have everybody tell what they know while they still run: processes in their logs, brokers in
    a file. Returns which transactions are open, and whether somebody is to end them."""
    await scene.processes.tell()
    found = await inquired(scene.brokers, [*scene.processes.copiers, LAST])
    (folder / ASKED).write_text(str(found))
    return found.transactions


async def _groups(brokers: Brokers, found: Inquiry) -> None:
    async with Admin(bootstrap_servers=brokers.bootstrap) as admin:
        for group in (GROUP, READERS):
            try:
                told = await admin.describe_groups([group], timeout_ms=_ADMIN_MS)
                found.lines.append(str(told[group]))
            except AdminFailed as err:
                found.lines.append(str(err))
        ends = {TopicPartition(IN, number): LATEST for number in range(PARTITIONS)}
        listed = await admin.list_offsets(ends, timeout_ms=_ADMIN_MS)
        found.lines += [f"{tp} ends at {each.offset}" for tp, each in listed.items()]


async def _offsets(brokers: Brokers, found: Inquiry) -> None:
    for group in (GROUP, READERS):
        for is_stable in (True, False):
            offsets = await committed(brokers, group, is_stable=is_stable)
            how = "stable" if is_stable else "whatever is open"
            found.lines.append(f"{group} has committed, {how}: {offsets}")


def _transactions(
    brokers: Brokers, node_id: int, transactional_ids: Sequence[str], found: Inquiry
) -> Callable[[], Awaitable[None]]:
    describe = message("DescribeTransactions", transactional_ids=list(transactional_ids))

    async def ask() -> None:
        told = await brokers.ask(node_id, describe, 0)
        for each in told.transaction_states:
            if each.error_code:
                name = error_name(each.error_code)
                found.lines.append(f"broker {node_id}: {each.transactional_id}: {name}")
                continue
            found.lines.append(f"broker {node_id}: {each}")
            found.coordinated.append(_coordinated(each))

    return ask


def _coordinated(told: Any) -> Coordinated:
    return Coordinated(
        transactional_id=told.transactional_id,
        state=told.transaction_state,
        producer_id=told.producer_id,
        epoch=told.producer_epoch,
        partitions=frozenset(
            (topic.topic, number) for topic in told.topics for number in topic.partitions
        ),
    )


def _producers(brokers: Brokers, node_id: int, found: Inquiry) -> Callable[[], Awaitable[None]]:
    topics = [
        {"name": name, "partition_indexes": [at for each, at in _PLACES if each == name]}
        for name in (OUT, OFFSETS)
    ]
    describe = message("DescribeProducers", topics=topics)

    async def ask() -> None:
        told = await brokers.ask(node_id, describe, 0)
        for topic in told.topics:
            for row in topic.partitions:
                where = f"broker {node_id}: {topic.name}-{row.partition_index}"
                if row.error_code:
                    found.lines.append(f"{where}: {error_name(row.error_code)}")
                    continue
                found.lines += [f"{where}: {each}" for each in row.active_producers]
                found.open += _open(topic.name, row)

    return ask


def _open(topic: str, row: Any) -> Iterator[Open]:
    for each in row.active_producers:
        if each.current_txn_start_offset != _NO_TRANSACTION:
            yield Open(
                topic=topic,
                partition=row.partition_index,
                producer_id=each.producer_id,
                epoch=each.producer_epoch,
                begins_at=each.current_txn_start_offset,
            )
