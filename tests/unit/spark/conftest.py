"""What tasks keep for the next task of their process ends with the tests that have run them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest


async def _stop(client: Any) -> None:
    await client.stop(timeout_ms=0)


@pytest.fixture(scope="module", autouse=True)
def nothing_goes_on() -> Iterator[None]:
    """Clients of brokers that are gone would ask for them in the background for as long as the
    tests of the whole process last."""
    yield
    try:
        from kip848_client.spark import _pouring, _reading
    except ImportError:  # a test says that there is no pyspark, or an old one
        return
    for loop, kept in ((_reading._loop, _reading._kept), (_pouring.writing_loop, _pouring._kept)):
        if loop.cache_info().currsize:
            for client in kept.values():
                loop().call(_stop(client), 5_000)
            kept.clear()
            loop().close()
            loop.cache_clear()
