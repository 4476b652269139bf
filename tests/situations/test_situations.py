"""What happens to a group in production: on our brokers, and on those of two releases of Kafka."""

from __future__ import annotations

import pytest

from tests.situations.run import SERVERS, play_all, play_rights, running
from tests.situations.secured import secured
from tests.support.pytest_kafka import skip_without_kafka

pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.timeout(240),
    pytest.mark.everything("sessions end, and brokers are restarted"),
    pytest.mark.parametrize(
        "server",
        [
            pytest.param(each, marks=[] if each == "mock" else pytest.mark.real_kafka)
            for each in SERVERS
        ],
    ),
]


async def test_whatever_happens_nothing_is_lost(server: str) -> None:
    with skip_without_kafka():
        async with running(server) as brokers:
            print("\n".join(await play_all(server, brokers)))


async def test_rights_that_are_taken_away_come_back(server: str) -> None:
    with skip_without_kafka():
        async with secured(server) as broker:
            print("\n".join(await play_rights(broker)))
