"""What users' code raises may be unable to say what it is. That must not become an error of ours,
which would end the membership that only wanted to tell of it."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from kip848_client.consumer._assignors import LocalAssignors
from kip848_client.consumer._listener import call_listener
from kip848_client.core.client_assignors import PreparedGroup, StickyAssignor
from kip848_client.core.group import ComputeAssignment
from kip848_client.core.ports import NotSent
from kip848_client.core.short import error_text
from kip848_client.core.types import TopicPartition
from kip848_client.records._record import raw_record
from kip848_client.records._unreadable import not_deserialized
from kip848_client.runtime.net._errors import not_opened

TP = TopicPartition("t", 0)


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


class MuteExit(SystemExit):
    __str__ = __repr__ = Mute.__str__


class Failing(StickyAssignor):
    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self._error = error

    def assign(self, members: object, topics: object) -> Any:
        del members, topics
        raise self._error


def test_an_error_is_told_by_its_type_where_it_has_no_text() -> None:
    assert error_text(ValueError("x")) == "ValueError: x"
    assert error_text(Mute()) == "Mute"


@pytest.mark.asyncio
async def test_of_a_listener() -> None:
    def listener(_partitions: Collection[TopicPartition]) -> None:
        raise Mute

    failure = await call_listener(listener, [TP], 1_000)
    assert "listener raised Mute" in str(failure)


@pytest.mark.asyncio
@pytest.mark.parametrize("error", [Mute(), MuteExit()])
async def test_of_an_assignor(error: BaseException) -> None:
    assignors = LocalAssignors([Failing(error)])
    group = PreparedGroup(1, "sticky", {}, {})
    answer = await assignors.compute(ComputeAssignment(1, group, timeout_ms=5_000))
    assert type(error).__name__ in str(answer.failure)


def test_of_a_deserializer() -> None:
    raw = raw_record(TP, 3, 0, 0, None, b"", ())
    assert "cannot be read: Mute" in str(not_deserialized(raw, Mute()))


@pytest.mark.parametrize("error", [Mute(), OSError("broken")])
def test_of_a_token_provider(error: Exception) -> None:
    error.__cause__ = Mute()
    assert isinstance(not_opened(error, "at:1"), NotSent)
