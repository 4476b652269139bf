"""A minute of chaos on Apache Kafka; ``python -m tests.chaos`` goes on for longer.

Brokers, ports, processes and folders are its own, so that it runs beside other tests. It takes
about 80 seconds: those of harm, a start and an end.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.chaos.run import chaos
from tests.support.pytest_kafka import chosen_versions, skip_without_kafka
from tests.support.tcp_proxy import Cut
from tests.torture.brokers import proxied_brokers

DONE: Final = (
    *("killed", "frozen", "restarted", "blocked", "dawdling"),
    *("broker killed", "leader moved"),
    *("group coordinator moved", "transaction coordinator moved"),
    *(cut.value for cut in Cut),
)


@pytest.mark.asyncio
@pytest.mark.real_kafka
@pytest.mark.timeout(400)
async def test_a_minute_of_chaos(request: pytest.FixtureRequest, tmp_path: Path) -> None:
    newest = chosen_versions(request.config)[-1]
    with skip_without_kafka():
        async with proxied_brokers(newest) as (brokers, proxy):
            report = await chaos(brokers, proxy, tmp_path, seconds=60, seed=1)
    assert report.is_clean, report
    assert all(report.done[each] for each in DONE), report
    assert report.told["abandoned"], report
    assert report.done["succeeded"] or report.done["taken back"], report
