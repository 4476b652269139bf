"""What the log says of a group's requests has its facts as fields."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from kip848_client.consumer._requests import GroupRequests
from kip848_client.core.member import FindCoordinator, ResolveTopics
from kip848_client.core.ports import NotSent
from kip848_client.core.types import GroupId, MemberId, TopicId

pytestmark = pytest.mark.asyncio


class Nobody:
    """Neither a transport nor a directory of topics finds anybody."""

    async def find_coordinator(self) -> None:
        raise NotSent("nobody is there")

    async def any_broker(self, *_: object, **__: object) -> Any:
        raise NotSent("nobody is there")

    async def resolve(self, _ids: Iterable[TopicId]) -> Mapping[TopicId, str]:
        raise NotSent("nobody is there")

    def watch(self, topics: object) -> None:
        assert not topics

    def name_of(self, _id: TopicId) -> str | None:
        return None


async def test_lines_about_requests_say_whose_they_are(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "kip848_client")
    nobody: Any = Nobody()
    requests = GroupRequests(
        GroupId("g"),
        MemberId("me"),
        None,
        nobody,
        nobody,
        lambda err: err,
        fields={"group_id": "g", "client_id": "c"},
    )
    await requests.find_coordinator(FindCoordinator(1))
    await requests.resolve(ResolveTopics(1, (TopicId(bytes(16)),)))
    await requests.names([TopicId(bytes(16))])
    assert len(caplog.records) == 3
    for line in caplog.records:
        told = {name: line.__dict__[name] for name in ("group_id", "client_id", "member_id")}
        assert told == {"group_id": "g", "client_id": "c", "member_id": "me"}, line.getMessage()
