"""Rights that are taken away while a group works, and given back."""

from __future__ import annotations

from typing import Final

from kip848_client.errors import GroupAuthorizationFailed, TopicAuthorizationFailed
from kip848_client.observe.core.watching import MemberFailed
from tests.integration.cluster import eventually
from tests.situations.diary import Verdict
from tests.situations.secured import Secured
from tests.situations.situation import Situation

__all__ = ["the_right_to_the_group", "the_right_to_the_topic"]

_SHORT_SESSION_MS: Final = 4_000
_WAIT_S: Final = 60.0


async def the_right_to_the_topic(situation: Situation, secured: Secured) -> Verdict:
    """Without the right to read the topic every call for records says so; with it again the same
    consumer goes on where it was."""
    async with situation.fed():
        app = await situation.start("m0", **secured.login)
        await situation.flows()
        await secured.deny("TOPIC", "READ", situation.topic)
        await eventually(lambda: len(app.errors) >= 2, _WAIT_S)
        await secured.give_back("TOPIC", "READ", situation.topic)
        await situation.flows()
        verdict = await situation.finish()
    assert {type(each) for each in app.errors} == {TopicAuthorizationFailed}
    assert (verdict.again, verdict.losers) == (0, ())
    return verdict


async def the_right_to_the_group(situation: Situation, secured: Secured) -> Verdict:
    """Without the right to the group the membership is over: the application is told by its call
    for records, by an event and by the listener, and a new consumer goes on when it has the right
    again. What was not committed comes again."""
    async with situation.fed(consumer_session_timeout_ms=_SHORT_SESSION_MS):
        app = await situation.start("m0", **secured.login)
        await situation.flows()
        await secured.deny("GROUP", "READ", situation.group)
        await eventually(lambda: app.is_over, _WAIT_S)
        await eventually(lambda: bool(app.errors), _WAIT_S)
        await situation.stop(app)
        await secured.give_back("GROUP", "READ", situation.group)
        await situation.start("m1", **secured.login)
        await situation.flows()
        verdict = await situation.finish()
    assert isinstance(app.errors[-1], GroupAuthorizationFailed)
    (failed,) = (each for each in app.events if isinstance(each, MemberFailed))
    assert failed.error is app.errors[-1]
    assert verdict.losers == ("m0",)
    return verdict
