"""Each snippet of README and of the how-to pages does what the page says, as it stands there."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from kip848_client import Admin, TopicPartition
from mock_coordinator import MockBroker
from tests.pages._snippets import PAGES, Until, name_of, play, snippets
from tests.support.fake_registry import FakeRegistry, fake_registry

TOPICS: Final = {"orders": 3, "orders-dead": 1, "invoices": 1, "ledger": 1, "refunds": 1}
COUNT: Final = 3


@dataclass(slots=True)
class World:
    """What a page finds on its cluster, and what its snippets leave behind."""

    broker: MockBroker
    registry: FakeRegistry
    printed: list[str] = field(default_factory=list[str])

    def note(self, *told: object) -> None:
        """In place of ``print``."""
        self.printed.append(" ".join(map(str, told)))

    def values(self, topic: str) -> list[bytes | None]:
        return [record.value for record in self.broker.records(topic)]

    async def committed(self, group: str = "billing") -> int:
        """Records that the group is done with."""
        async with Admin(bootstrap_servers=self.broker.bootstrap) as admin:
            offsets = await admin.list_group_offsets(group)
        return sum(each.offset for each in offsets.values())


@dataclass(frozen=True, slots=True)
class Snippet:
    """What one is expected to do beside ending without an error."""

    endless: bool = False
    """It goes on until it is stopped: here, when the group is done with all orders."""
    prints: int = 0
    writes: tuple[str, ...] = ()
    """Topics in which records are afterwards."""
    replaced: tuple[tuple[str, str], ...] = ()
    calls: str | None = None
    """A function that it defines, and that a reader would call."""
    undo: bool = False
    """It changes aiokafka for the whole process, until what it calls ``installed`` is undone."""
    orders: int = COUNT
    """So many are there before."""
    group: bool = False
    """A group ``billing`` has been there."""


RUN: Final = ("asyncio.run(main())", "await main()")
FROM_THE_BEGIN: Final = ('"billing"', '"billing", auto_offset_reset="earliest"')
"""The orders of a world are older than its groups."""
EXPECTED: Final[dict[str, tuple[Snippet, ...]]] = {
    "README": (
        Snippet(
            endless=True,
            prints=COUNT,
            replaced=(RUN, FROM_THE_BEGIN),
        ),
        Snippet(endless=True, writes=("invoices",)),
        Snippet(calls="test_my_consumer"),
    ),
    "administer": (Snippet(prints=1, group=True),),
    "come-from-aiokafka": (Snippet(), Snippet(undo=True)),
    "come-from-confluent-kafka": (Snippet(orders=0), Snippet()),
    "deserialize": (
        Snippet(prints=1),
        Snippet(endless=True, prints=COUNT),
        Snippet(prints=1),
        Snippet(endless=True, prints=COUNT, writes=("orders-dead",)),
    ),
    "exactly-once": (
        Snippet(writes=("invoices", "ledger")),
        Snippet(endless=True, writes=("invoices",)),
        Snippet(endless=True, writes=("invoices",)),
    ),
    "frames": (Snippet(prints=1), Snippet(prints=1)),
    "history": (
        Snippet(),
        Snippet(writes=("ledger",), replaced=(('"history"', '"ledger"'),)),
        Snippet(prints=1),
    ),
    "produce": (Snippet(prints=1), Snippet()),
    "run-in-production": (Snippet(endless=True, prints=COUNT, replaced=(RUN,)),),
}


ELSEWHERE: Final = {"pipeline", "spark", "spark-clusters", "watch"}
"""``tests/integration/test_watch_page.py``: its snippets watch one consumer.
``tests/spark/``: they need Spark."""


def test_every_snippet_is_expected() -> None:
    pages = [page for page in PAGES if name_of(page) not in ELSEWHERE]
    counted = {name_of(page): len(snippets(page)) for page in pages}
    assert {name: count for name, count in counted.items() if count} == {
        name: len(each) for name, each in EXPECTED.items()
    }


@asynccontextmanager
async def world(expected: Snippet) -> AsyncGenerator[World]:
    async with (
        MockBroker(TOPICS, config={"group.consumer.assignment.interval.ms": "0"}) as broker,
        fake_registry() as registry,
    ):
        for number in range(expected.orders):
            broker.produce("orders", b"%d" % number, partition=number, key=b"k")
        if expected.group:
            async with Admin(bootstrap_servers=broker.bootstrap) as admin:
                await admin.alter_group_offsets("billing", {TopicPartition("orders", 0): 0})
        yield World(broker, registry)


@pytest.mark.asyncio
@pytest.mark.parametrize("page", [each for each in PAGES if name_of(each) in EXPECTED], ids=name_of)
async def test_the_page(page: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)  # where snippets write files
    names: dict[str, Any] = {"__name__": "pages"}
    for source, expected in zip(snippets(page), EXPECTED[name_of(page)], strict=True):
        async with world(expected) as there:
            monkeypatch.setattr("builtins.print", there.note)
            await _play(source, expected, names, there)
            assert len(there.printed) >= expected.prints
            for topic in expected.writes:
                assert there.values(topic), f"{topic} is empty"


async def _play(source: str, expected: Snippet, names: dict[str, Any], there: World) -> None:
    bootstrap = there.broker.bootstrap
    registry = {"http://localhost:8081": there.registry.url}
    replaced = {"localhost:9092": bootstrap, **registry, **dict(expected.replaced)}

    async def all_done() -> bool:
        return len(there.printed) >= COUNT or await there.committed() >= COUNT

    until: Until | None = all_done if expected.endless else None
    await play(source, names, replaced, until)
    if expected.calls:
        await names[expected.calls]()
    if expected.undo:
        names["installed"].undo()
