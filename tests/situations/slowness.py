"""Applications that are slow: in a callback, or with their records."""

from __future__ import annotations

from typing import Final

from kip848_client.observe.core.watching import ApplicationStalled, MemberFenced
from tests.integration.cluster import eventually
from tests.situations.diary import Verdict, What
from tests.situations.members import Application
from tests.situations.situation import Situation

__all__ = ["a_callback_that_is_slow", "a_callback_that_is_too_slow", "records_that_take_too_long"]

_SLOW_S: Final = 1.5
_TOO_SLOW_S: Final = 5.0
_MAX_POLL_MS: Final = 2_500
_WAIT_S: Final = 60.0


async def a_callback_that_is_slow(situation: Situation) -> Verdict:
    """Who gives partitions back slowly stays a member, and who is to get them waits for it."""
    async with situation.fed():
        slow = await situation.start("slow")
        await situation.shared(4)
        await situation.flows()
        slow.revoking_s = _SLOW_S
        await situation.start("other")
        await situation.shared(2, 2)
        await situation.flows()
        slow.revoking_s = 0
        verdict = await situation.finish()
    assert (verdict.again, verdict.losers) == (0, ())
    asked = next(each.at for each in situation.entries if each.what is What.REVOKING)
    got = next(
        each.at for each in situation.entries if (each.who, each.what) == ("other", What.ASSIGNED)
    )
    assert got - asked >= _SLOW_S
    return verdict


async def a_callback_that_is_too_slow(situation: Situation) -> Verdict:
    """Who does not give partitions back within the time-out of the rebalance is put out: the other
    one gets them, and the slow one hears that they are lost and joins again."""
    async with situation.fed():
        slow = await situation.start(
            "slow",
            rebalance_timeout_ms=_MAX_POLL_MS,
            rebalance_callback_timeout_ms=60_000,
        )
        await situation.shared(4)
        await situation.flows()
        slow.revoking_s = _TOO_SLOW_S
        other = await situation.start("other")
        await eventually(lambda: len(other.consumer.assignment()) == 4, _WAIT_S)
        await eventually(lambda: _has_lost(slow), _WAIT_S)
        slow.revoking_s = 0
        await situation.shared(2, 2)
        await situation.flows()
        verdict = await situation.finish()
    assert [each.cause for each in slow.events if isinstance(each, MemberFenced)]
    assert verdict.losers == ("slow",)
    return verdict


def _has_lost(app: Application) -> bool:
    return any(name == "lost" for name, _ in app.callbacks)


async def records_that_take_too_long(situation: Situation) -> Verdict:
    """Who keeps records for longer than ``max_poll_interval_ms`` leaves the group, and is told
    before; another one goes on with what was not committed; when it asks again it is back."""
    async with situation.fed():
        slow = await situation.start("slow", max_poll_interval_ms=_MAX_POLL_MS)
        other = await situation.start("other")
        await situation.shared(2, 2)
        await situation.flows()
        slow.free.clear()
        await eventually(lambda: len(other.consumer.assignment()) == 4, _WAIT_S)
        await situation.flows()
        left = [each.left_ms for each in slow.events if isinstance(each, ApplicationStalled)]
        assert left[0] > 0, "it was told before"
        assert left[-1] == 0, "it was told that it is out"
        slow.free.set()
        await situation.shared(2, 2)
        await situation.flows()
        verdict = await situation.finish()
    assert verdict.losers == ("slow",)
    return verdict
