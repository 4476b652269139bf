"""What tasks keep for the next task of their process ends with the tests that have run them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from mock_coordinator.threaded import BrokerThread

if TYPE_CHECKING:
    from tests.unit.spark.source._by_hand import Query


async def _stop(client: Any) -> None:
    await client.stop(timeout_ms=0)


@pytest.fixture(scope="module", autouse=True)
def nothing_goes_on() -> Iterator[None]:
    """Clients of brokers that are gone would ask for them in the background for as long as the
    tests of the whole process last."""
    yield
    try:
        from kip848_client.spark.sink import _write_task
        from kip848_client.spark.source import _reading
    except ImportError:  # a test says that there is no pyspark, or an old one
        return
    for loop, kept in (
        (_reading._loop, _reading._kept),
        (_write_task.writing_loop, _write_task._kept),
    ):
        if loop.cache_info().currsize:
            for client in kept.values():
                loop().call(_stop(client), 5_000)
            kept.clear()
            loop().close()
            loop.cache_clear()


@pytest.fixture
def begin(mock_broker: BrokerThread) -> Iterator[Callable[..., Query]]:
    """Begin a query with these options; all are closed at the end."""
    from tests.unit.spark.source._by_hand import Query, options_of

    begun: list[Query] = []

    def make(**said: str | None) -> Query:
        begun.append(Query(options_of(mock_broker.bootstrap, **said)))
        return begun[-1]

    yield make
    for query in begun:
        query.runner.close()
