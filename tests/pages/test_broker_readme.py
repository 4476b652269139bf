"""The snippet of ``mock_coordinator/README.md`` about a broker that dies."""

from __future__ import annotations

import pytest

from tests.pages._snippets import ROOT, play, snippets


@pytest.mark.asyncio
async def test_a_broker_that_dies_is_replaced() -> None:
    page = ROOT / "mock_coordinator" / "README.md"
    (snippet,) = (each for each in snippets(page) if "crash_broker" in each)
    printed: list[object] = []
    await play(snippet, {"print": printed.append}, {})
    assert printed == [b"after the crash"]
