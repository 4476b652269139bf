"""What happens to a group in production: on our brokers and on the newest release of Kafka; on the
oldest what comes out differently there."""

from __future__ import annotations

from typing import Final

import pytest

from tests.situations.run import (
    BY_NAME,
    OF_NAMES,
    SERVERS,
    play_all,
    play_rights,
    play_these,
    running,
)
from tests.situations.secured import secured
from tests.support.pytest_kafka import skip_without_kafka

pytestmark = [
    pytest.mark.asyncio,
    pytest.mark.timeout(240),
    pytest.mark.everything("sessions end, and brokers are restarted"),
]

_ON_EACH: Final = pytest.mark.parametrize(
    "server",
    [
        pytest.param(each, marks=[] if each == "mock" else pytest.mark.real_kafka)
        for each in SERVERS
    ],
)


@_ON_EACH
async def test_whatever_happens_nothing_is_lost(server: str) -> None:
    with skip_without_kafka():
        async with running(server) as brokers:
            print("\n".join(await play_all(server, brokers)))


@pytest.mark.real_kafka
@pytest.mark.parametrize("server", BY_NAME)
async def test_a_topic_is_created_again_where_offsets_are_by_name(server: str) -> None:
    with skip_without_kafka():
        async with running(server) as brokers:
            print("\n".join(await play_these(server, brokers, OF_NAMES)))


@_ON_EACH
async def test_rights_that_are_taken_away_come_back(server: str) -> None:
    with skip_without_kafka():
        async with secured(server) as broker:
            print("\n".join(await play_rights(broker)))
