"""Brokers that answer, fail, or say nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kip848_client.core.ports import ConnectionBroken, NotSent
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import BrokerError, RequestTimedOut
from kip848_client.runtime.net._first_answer import FirstAnswer
from tests.unit.waiting import some_rounds, until

pytestmark = pytest.mark.asyncio

REFUSED = ErrorCode.SASL_AUTHENTICATION_FAILED


class Broker:
    """Answers with its name, or raises ``error``, or does so later."""

    def __init__(
        self, name: str, error: Exception | None = None, *, is_silent: bool = False
    ) -> None:
        self.name = name
        self.error = error
        self.is_silent = is_silent
        self.was_asked = self.is_over = False
        self.says = asyncio.Event()

    async def answer(self) -> str:
        self.was_asked = True
        try:
            if self.is_silent:
                await self.says.wait()
        finally:
            self.is_over = True
        if self.error is not None:
            raise self.error
        return self.name


async def first(
    *brokers: Broker, asking: FirstAnswer | None = None, head_start_s: float = 0
) -> Any:
    links: Any = brokers
    async with asyncio.timeout(5):
        return await (asking or FirstAnswer(head_start_s)).of(links, _ask)


async def _ask(link: Any) -> str:
    broker: Broker = link
    return await broker.answer()


async def test_one_that_answers_is_enough() -> None:
    two = Broker("two")
    assert await first(Broker("one"), two, head_start_s=60) == "one"
    assert not two.was_asked


async def test_a_silent_one_holds_nothing_up() -> None:
    one, asking = Broker("one", is_silent=True), FirstAnswer(0)
    assert await first(one, Broker("two"), asking=asking) == "two"
    assert not one.is_over, "that it does not answer has to be found out"
    one.error = RequestTimedOut("no answer")
    one.says.set()
    await until(lambda: one.is_over)


async def test_a_failure_does_not_wait_for_the_head_start() -> None:
    one = Broker("one", NotSent("refused"))
    assert await first(one, Broker("two"), head_start_s=60) == "two"


async def test_the_answer_of_a_slow_one_is_taken() -> None:
    one = Broker("one", is_silent=True)
    two = Broker("two", NotSent("refused"))
    answer = asyncio.ensure_future(first(one, two))
    await until(lambda: two.is_over)
    one.says.set()
    assert await answer == "one"


async def test_not_all_are_asked_at_once() -> None:
    brokers = [Broker(str(n), ConnectionBroken(str(n)), is_silent=True) for n in range(5)]
    answer = asyncio.ensure_future(first(*brokers))
    await some_rounds(200)
    assert [each.was_asked for each in brokers] == [True, True, True, False, False]
    brokers[1].says.set()
    await some_rounds(200)
    assert [each.was_asked for each in brokers] == [True, True, True, True, False]
    for each in brokers:
        each.says.set()
    with pytest.raises(ConnectionBroken):
        await answer


async def test_there_may_be_none() -> None:
    with pytest.raises(NotSent, match="no broker is known"):
        await first()


async def test_what_another_one_would_say_too_is_told_at_once() -> None:
    one = Broker("one", is_silent=True)
    two = Broker("two", BrokerError(REFUSED, REFUSED.name), is_silent=True)
    answer = asyncio.ensure_future(first(one, two))
    await until(lambda: two.was_asked)
    two.says.set()
    with pytest.raises(BrokerError):
        await answer
    assert one.is_over


async def test_whoever_gives_up_leaves_nothing_behind() -> None:
    brokers = [Broker(str(n), is_silent=True) for n in range(2)]
    answer = asyncio.ensure_future(first(*brokers))
    await until(lambda: brokers[1].was_asked)
    answer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await answer
    assert all(each.is_over for each in brokers)


async def test_closing_ends_what_is_waited_for() -> None:
    one, asking = Broker("one", is_silent=True), FirstAnswer(0)
    await first(one, Broker("two"), asking=asking)
    await asking.close()
    assert one.is_over
