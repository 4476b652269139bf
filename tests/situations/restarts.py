"""Members that are restarted, one after the other, and members that crash."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest

from kip848_client.errors import UnreleasedInstanceId
from tests.integration.cluster import eventually
from tests.situations.diary import Verdict
from tests.situations.members import Application
from tests.situations.situation import Situation

__all__ = ["another_instance_id", "rolling_restart", "static_crash", "static_restart"]

_SHORT_SESSION_MS: Final = 4_000
"""Of members that crash or stay away."""
_CRASHES: Final = 4
"""On a busy machine a session may be over before anybody asks for the id again."""
_PAUSE_S: Final = 0.3
_WAIT_S: Final = 60.0


async def rolling_restart(situation: Situation) -> Verdict:
    """Each of three members is replaced by a new one: nothing is lost, and nothing comes twice."""
    async with situation.fed():
        old = [await situation.start(f"old{n}") for n in range(3)]
        await situation.shared(2, 1, 1)
        for number, each in enumerate(old):
            await situation.flows()
            await situation.stop(each)
            new = await situation.start(f"new{number}")
            await new.consumer.wait_assigned(60_000)
        await situation.flows()
        verdict = await situation.finish()
    assert (verdict.again, verdict.losers) == (0, ())
    return verdict


async def static_restart(situation: Situation) -> Verdict:
    """Static members are restarted within their session: each gets its partitions back, nobody
    else hears of it, and nothing comes twice."""
    async with situation.fed(consumer_session_timeout_ms=30_000):
        ids = ("i0", "i1")
        running = {each: await situation.start(each, group_instance_id=each) for each in ids}
        await situation.shared(2, 2)
        await situation.flows()
        before = await _group_epoch(situation)
        for each in ids:
            had = running[each].consumer.assignment()
            called = {other: len(running[other].callbacks) for other in ids if other != each}
            await situation.stop(running[each])
            running[each] = await situation.start(f"{each} again", group_instance_id=each)
            assert await running[each].consumer.wait_assigned(60_000) == had
            await situation.flows()
            assert called == {other: len(running[other].callbacks) for other in called}
        assert await _group_epoch(situation) == before
        verdict = await situation.finish()
    assert (verdict.again, verdict.losers) == (0, ())
    return verdict


async def static_crash(situation: Situation) -> Verdict:
    """A static member crashes. Until its session is over nobody can have its id, and whoever tries
    is told so; then it comes back. Only what was not committed comes again."""
    async with situation.fed(consumer_session_timeout_ms=_SHORT_SESSION_MS):
        await situation.start("stays")
        crashing = await situation.start("crashes", group_instance_id="i")
        for _ in range(_CRASHES):
            await situation.shared(2, 2)
            await situation.flows()
            await situation.crash(crashing)
            refusals, back = 0, None
            while back is None:
                back = await _has_come_back(situation, f"back{refusals}")
                refusals += back is None
            crashing = back
            if refusals:
                break
        else:
            raise AssertionError("its id was always free at once")
        await situation.shared(2, 2)
        await situation.flows()
        return await situation.finish()


async def _has_come_back(situation: Situation, name: str) -> Application | None:
    """A supervisor's attempt to start it again; ``None`` if it was sent away."""
    new = await situation.start(name, group_instance_id="i")
    await eventually(lambda: new.is_over or bool(new.consumer.assignment()), _WAIT_S)
    if not new.is_over:
        return new
    with pytest.raises(UnreleasedInstanceId):
        await new.consumer.getone()
    await situation.stop(new)
    await asyncio.sleep(_PAUSE_S)
    return None


async def another_instance_id(situation: Situation) -> Verdict:
    """A static member comes back under another id: to the group it is another member, and what the
    first one had is free when its session is over."""
    async with situation.fed(consumer_session_timeout_ms=_SHORT_SESSION_MS):
        first = await situation.start("first", group_instance_id="i1")
        await situation.shared(4)
        await situation.flows()
        await situation.stop(first)
        await situation.start("second", group_instance_id="i2")
        await situation.shared(4)
        await situation.flows()
        verdict = await situation.finish()
    assert (verdict.again, verdict.losers) == (0, ())
    return verdict


async def _group_epoch(situation: Situation) -> int:
    found = await situation.admin.describe_groups([situation.group])
    epoch = found[situation.group].group_epoch
    assert epoch is not None
    return epoch
