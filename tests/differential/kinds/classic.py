"""Classic groups: JoinGroup, SyncGroup, Heartbeat and LeaveGroup from several connections, with
joins and syncs that wait for each other; static members and their replacements, pending members,
leaders that go; commits, fetches, descriptions and removals in every state in between.
"""

from __future__ import annotations

import random
from typing import Any, Final

from kip848_client.core.wire.messages.groups import DescribeGroupsRequest
from tests.differential._classic_clients import ClassicClient, ClassicModel
from tests.differential._classic_requests import LONG_MS, OUTSIDER_CHANNEL, ClassicRequests
from tests.differential._classic_tools import TOOLS
from tests.differential._conversation import new_state
from tests.differential._plan import Kind, Plan, Steps, TooSlowError
from tests.differential._sequence_state import SequenceState
from tests.differential._steps import AwaitValue, Gather, Send

__all__ = ["KIND", "ClassicConversation"]

_REQUESTS: Final = 56
_CLIENTS: Final = 6
_TIMED_SHARE: Final = 0.12
_TIMED_MS: Final = 1000
_CALM_EVERY: Final = 5
_AFTER_MS: Final = 100  # so long ago, at most, came what was just gathered
_DOUBT_MS: Final = 0.8 * _TIMED_MS
_CALM: Final = ("Stable", "Empty", "Dead")


class ClassicConversation:
    """One group, up to six clients. In a timed conversation rebalance timeouts are short: whenever
    requests wait, it lets the timer answer them before anything else is asked. Every few requests
    it waits until no timer runs: what is asked just when one ends is answered by chance."""

    def __init__(
        self, plan: Plan, state: SequenceState, *, timed_share: float = _TIMED_SHARE
    ) -> None:
        rng = state.rng
        self._state = state
        self._plan = plan
        self._group = ClassicModel(plan.prefix)
        self._timed = rng.random() < timed_share
        rebalance_ms = _TIMED_MS if self._timed else LONG_MS
        self._requests = ClassicRequests(state, self._group, rebalance_ms)
        self._sent = 0
        self._calm_ms = plan.now_ms()
        """Whatever timer runs has begun later than this."""
        self._calm_due = _CALM_EVERY
        self._hopeless: set[int] = set()
        self._weights = self._mood(rng)

    @staticmethod
    def _mood(rng: random.Random) -> dict[str, float]:
        weights = {
            "arrive": 5.0,
            "rejoin": 5.0,
            "change": 2.0,
            "sync": 6.0,
            "heartbeat": 4.0,
            "leave": 2.0,
            "remove": 1.5,
            "wrong": 4.0,
            "replace": 2.0,
            "converge": 3.0,
            "tool": 9.0,
        }
        needed = {"arrive", "converge"}
        return {
            name: weight * (1 if name in needed else rng.choice([0.2, 0.5, 1, 1, 3]))
            for name, weight in weights.items()
        }

    def steps(self) -> Steps:
        """The whole sequence."""
        rng = self._state.rng
        if rng.random() < 0.1:
            self._requests.type = rng.choice(["connect", "own"])
        yield from self._arrive()
        while self._sent < _REQUESTS:
            (choice,) = rng.choices(list(self._weights), list(self._weights.values()))
            yield from self._act(choice)
            yield from self._let_time_pass()
        yield from self._tool()

    def _act(self, choice: str) -> Steps:
        rng = self._state.rng
        requests = self._requests
        members = self._group.members
        idle = self._group.idle
        if choice == "arrive":
            yield from self._arrive()
        elif choice == "converge":
            yield from self._converge()
        elif choice == "tool" or not idle:
            yield from self._tool()
        elif choice == "remove":
            yield from self._send(requests.remove())
        elif choice == "replace":
            yield from self._replace()
        elif choice == "wrong":
            fault = rng.choice([requests.join_wrong, requests.sync_wrong, requests.heartbeat_wrong])
            yield from self._send(fault(rng.choice(idle)))
        elif not members:
            yield from self._join(rng.choice(idle))
        elif choice in ("rejoin", "change"):
            client = rng.choice(members)
            if choice == "change":
                requests.prepare(client)
            yield from self._join(client)
        elif choice == "sync":
            due = [each for each in members if each.must_sync]
            yield from self._send(requests.sync(rng.choice(due or members)))
        elif choice == "heartbeat":
            yield from self._send(requests.heartbeat(rng.choice(members)))
        else:
            client = rng.choice(members)
            yield from self._send(requests.leave(client))
            self._group.forget(client)

    # -- clients -----------------------------------------------------------------------------------

    def _arrive(self) -> Steps:
        rng = self._state.rng
        unused = [each for each in self._group.idle if not each.member_id]
        if len(self._group.clients) < _CLIENTS and (not unused or rng.random() < 0.6):
            client = self._requests.new_client()
        elif unused:
            client = rng.choice(unused)
        else:
            return
        yield from self._join(client)

    def _join(self, client: ClassicClient) -> Steps:
        """Join, and once more with the id that was given, as clients do; sometimes not at once."""
        before = client.member_id
        yield from self._send(self._requests.join(client))
        given = not before and client.member_id and client.generation < 0 and not client.waits
        if given and self._state.rng.random() < 0.85:
            yield from self._send(self._requests.join(client))

    def _replace(self) -> Steps:
        """A static member starts again without its member id."""
        static = [each for each in self._group.idle if each.instance_id is not None]
        if not static:
            return
        client = self._state.rng.choice(static)
        if client.member_id:
            self._group.gone.append(client.member_id)
        client.member_id = ""
        if self._state.rng.random() < 0.3:
            self._requests.prepare(client)
        yield from self._join(client)

    def _converge(self) -> Steps:
        """Everybody does what good clients do, until the group is stable."""
        for _ in range(2):
            for client in list(self._group.idle):
                if client.member_id and not client.must_sync and not client.waits:
                    yield from self._send(self._requests.heartbeat(client))
            for client in list(self._group.idle):
                if client.member_id and not client.waits and not client.must_sync:
                    yield from self._join(client)
            for client in list(self._group.idle):
                if client.must_sync and not client.waits:
                    yield from self._send(self._requests.sync(client))
            yield from self._let_time_pass()

    def _tool(self) -> Steps:
        rng = self._state.rng
        _, chooser = rng.choices(TOOLS, [weight for weight, _ in TOOLS])[0]
        ask = chooser(self._state, self._group)
        yield from self._send(Send(ask.action, ask.message, ask.version, OUTSIDER_CHANNEL))

    def _let_time_pass(self) -> Steps:
        """In a timed conversation: until the rebalance timeout has answered those who wait. Some
        answers never come (another connection took the member over), and are waited for once."""
        while self._timed:
            waiting = {each.channel for each in self._group.clients if each.waits} - self._hopeless
            if not waiting:
                break
            answers = yield Gather(any_within_ms=3 * _TIMED_MS)
            self._calm_ms = self._plan.now_ms() - _AFTER_MS
            yield from self._answers(answers)
            if not answers:
                self._hopeless |= waiting
                yield from self._calm_down()
        if self._timed and self._sent >= self._calm_due:
            yield from self._calm_down()

    def _calm_down(self) -> Steps:
        """Until no timer runs."""
        describe = DescribeGroupsRequest(groups=(self._group.group_id,))
        yield AwaitValue("calm", describe, 5, "groups.0.group_state", _CALM)
        self._calm_ms = self._plan.now_ms()
        self._calm_due = self._sent + _CALM_EVERY

    def _send(self, send: Send) -> Steps:
        self._group.sent(send.channel)
        self._sent += 1
        answers = yield send
        if self._timed and self._plan.now_ms() - self._calm_ms > _DOUBT_MS:
            raise TooSlowError("a timer may have ended on one side, and not yet on the other")
        yield from self._answers(answers)

    def _answers(self, answers: dict[int, Any]) -> Steps:
        for channel, answer in answers.items():
            self._group.heard(channel, answer)
        yield from ()


def sequence(plan: Plan) -> Steps:
    """The steps of one seed."""
    return ClassicConversation(plan, new_state(plan, pattern_share=0)).steps()


KIND: Final = Kind("classic", 16, sequence)
