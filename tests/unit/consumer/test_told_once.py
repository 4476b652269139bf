"""What the driver remembers of what it has told the core of fetching."""

from __future__ import annotations

from typing import Any

import pytest

from kip848_client.consumer._error_box import ErrorBox
from kip848_client.consumer._fetchable import Fetchable
from kip848_client.consumer._positions import Positions
from kip848_client.core.fetch import AllButHeld, FoundOffset, SeekEnded, StoredOffset
from kip848_client.core.types import TopicId, TopicPartition
from tests.unit.consumer.fakes import FakeClock

A, B = TopicPartition("t", 0), TopicPartition("t", 1)
OF = dict.fromkeys((A, B), TopicId(b"t" * 16))


def test_what_is_held_is_told_again_when_the_assignment_has_changed() -> None:
    told: list[AllButHeld] = []
    held = Fetchable(told.append)
    held.fetch_only((A,), OF)
    held.fetch_only((A,), OF)
    assert len(told) == 1
    held.assignment_changed()
    held.fetch_only((A,), OF)
    assert told == [AllButHeld(frozenset(OF), frozenset({A}))] * 2


@pytest.mark.asyncio
async def test_a_seek_to_an_end_of_the_log_says_no_epoch() -> None:
    """The one in the answer is the leader's: the record before may be of an older one."""

    class FetchDriver:
        def __init__(self) -> None:
            self.events: list[Any] = []

        def ticket(self) -> int:
            return 4

        def post(self, event: Any) -> None:
            self.events.append(event)

        async def offsets(self, times: Any, _deadline_ms: int) -> Any:
            return {tp: FoundOffset(5, -1, 7) for tp in times}

    fetching: Any = FetchDriver()
    positions = Positions(fetching, ErrorBox(lambda: None), FakeClock(), patience_ms=1_000)
    await positions.seek_to((A,), -1)
    assert fetching.events[-1] == SeekEnded(4, {A: StoredOffset(5)}, committed=False)
