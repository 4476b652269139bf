"""The code of docs/how-to/watch.md runs, and its instruments tell something."""

from __future__ import annotations

import asyncio
import textwrap
from pathlib import Path
from typing import Any, Final

import prometheus_client
import pytest

from kip848_client import Consumer
from kip848_client.errors import UnsupportedVersion
from kip848_client.observe.core.watching import MembershipEvent
from mock_coordinator import MockBroker
from tests.pages._snippets import snippets

PAGE: Final = Path(__file__).parents[2] / "docs" / "how-to" / "watch.md"

pytestmark = pytest.mark.asyncio


async def run(code: str, names: dict[str, Any]) -> None:
    """What a block defines is there for those after it."""
    body = textwrap.indent(code, "    ")
    program = f"async def page():\n    global consumer, metrics, health\n{body}"
    exec(program, names)
    await names["page"]()


async def test_the_code_of_the_page_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    ports: list[int] = []
    monkeypatch.setattr(prometheus_client, "start_http_server", ports.append)
    well, follow, count, prometheus, otel, push = snippets(PAGE)
    async with MockBroker({"orders": 2}) as broker:
        names: dict[str, Any] = {"Consumer": Consumer}
        await run(count.replace("localhost:9092", broker.bootstrap), names)
        await run(prometheus, names)
        await run(otel, names)
        exec(follow, names)
        consumer: Consumer[bytes | None, bytes | None] = names["consumer"]
        seen: list[MembershipEvent] = []
        following = asyncio.ensure_future(names["follow"](consumer))
        stream = consumer.events()
        async with consumer:
            await consumer.wait_assigned(20_000)
            await run(well, names)
            exec(push, names)
            with pytest.raises(UnsupportedVersion):  # the bundled broker takes no metrics
                await names["print_instance_id"](consumer)
            assert names["health"].ready
            scraped = prometheus_client.generate_latest().decode()
            assert 'kip848_consumer_assigned_partitions{client_id="kip848-client"' in scraped
        seen += [event async for event in stream]
        await asyncio.wait_for(following, 10)
    assert seen
    assert ports == [8000]
