"""aiokafka's listeners hear pairs: all that was told of goes, all that there is now comes."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from itertools import pairwise
from typing import Any

import pytest
from aiokafka.structs import TopicPartition
from hypothesis import given, settings
from hypothesis import strategies as st

from kip848_client.aiokafka._listener import ListenerInPairs
from kip848_client.core.types import TopicPartition as OurPartition
from tests.support.examples import examples

Call = tuple[str, set[int]]


class Inner:
    """The consumer below, as far as the pairs ask for it."""

    nothing_after_s = 0.0

    def __init__(self) -> None:
        self.held = False
        self.greetings = 0

    def hold(self, *, everything: bool) -> None:
        self.held = everything

    def greet_listener(self) -> None:
        self.greetings += 1


class Listener:
    """Remembers what it was told, and what was held meanwhile. ``fails`` names calls."""

    def __init__(self, world: World, *fails: str) -> None:
        self.world = world
        self.fails = list(fails)
        self.calls: list[Call] = []

    def on_partitions_revoked(self, revoked: set[Any]) -> None:
        self._called("revoked", revoked)

    async def on_partitions_assigned(self, assigned: set[Any]) -> None:
        await asyncio.sleep(0)
        self._called("assigned", assigned)

    def _called(self, name: str, partitions: set[Any]) -> None:
        assert all(type(tp) is TopicPartition for tp in partitions)
        assert self.world.inner.held
        assert self.world.pairs.is_revoking is (name != "assigned")
        self.calls.append((name, {tp.partition for tp in partitions}))
        partitions.add("what it does with the set is its own affair")
        if name in self.fails:
            self.fails.remove(name)
            raise ValueError(name)


class Knowing(Listener):
    """Knows ``on_partitions_lost``, which aiokafka does not."""

    def on_partitions_lost(self, lost: set[Any]) -> None:
        self._called("lost", lost)


class World:
    """One consumer with one listener."""

    def __init__(self, *fails: str, kind: type[Listener] = Listener) -> None:
        self.inner = Inner()
        self.notified = 0
        inner: Any = self.inner
        self.pairs = ListenerInPairs(inner, self._notify)
        self.listener = kind(self, *fails)
        self.pairs.listen(self.listener)

    def _notify(self) -> None:
        self.notified += 1

    async def assign(self, *numbers: int) -> None:
        await self.pairs.on_partitions_assigned(parts(*numbers))

    async def revoke(self, *numbers: int) -> None:
        await self.pairs.on_partitions_revoked(parts(*numbers))

    async def lose(self, *numbers: int) -> None:
        await self.pairs.on_partitions_lost(parts(*numbers))

    def heard(self, listener: Listener | None = None) -> list[Call]:
        """The calls since the last look."""
        calls = (listener or self.listener).calls
        found = calls[:]
        calls.clear()
        return found


def parts(*numbers: int) -> set[OurPartition]:
    return {OurPartition("t", number) for number in numbers}


async def turns() -> None:
    """Timers that are due go off."""
    for _ in range(3):
        await asyncio.sleep(0)


@pytest.mark.asyncio
async def test_the_first_call_revokes_nothing() -> None:
    world = World()
    await world.assign(0, 1)
    assert world.heard() == [("revoked", set()), ("assigned", {0, 1})]
    assert not world.inner.held
    assert world.notified == 1


@pytest.mark.asyncio
async def test_what_stays_is_told_again_with_what_is_new() -> None:
    world = World()
    await world.assign(0)
    await world.assign(1)
    assert world.heard()[2:] == [("revoked", {0}), ("assigned", {0, 1})]


@pytest.mark.asyncio
async def test_what_stays_is_revoked_and_assigned_with_what_goes() -> None:
    world = World()
    await world.assign(0, 1)
    await world.revoke(1)
    assert world.inner.held
    assert world.pairs.is_revoking
    await world.assign()
    assert not world.inner.held
    assert world.heard()[2:] == [("revoked", {0, 1}), ("assigned", {0})]
    await world.revoke(0)
    await world.assign()
    assert world.heard() == [("revoked", {0}), ("assigned", set())]


@pytest.mark.asyncio
async def test_nothing_is_said_when_nothing_changes() -> None:
    world = World()
    await world.assign(0)
    world.heard()
    await world.assign()
    assert world.heard() == []
    assert world.notified == 2


@pytest.mark.asyncio
async def test_who_joins_late_hears_of_nothing_when_it_stays_so() -> None:
    world = World()
    await world.assign()
    await world.assign()
    assert world.heard() == []
    await turns()
    assert world.inner.greetings == 1
    await world.assign()
    assert world.heard() == [("revoked", set()), ("assigned", set())]
    await world.assign(3)
    assert world.heard() == [("revoked", set()), ("assigned", {3})]


@pytest.mark.asyncio
async def test_who_joins_late_and_gets_something_hears_of_that_only() -> None:
    world = World()
    await world.assign()
    await world.assign(3)
    assert world.heard() == [("revoked", set()), ("assigned", {3})]
    await turns()
    assert world.inner.greetings == 0


@pytest.mark.asyncio
@pytest.mark.parametrize("kind", [Listener, Knowing])
async def test_a_loss_is_the_first_half_of_a_pair(kind: type[Listener]) -> None:
    name = "lost" if kind is Knowing else "revoked"
    world = World(kind=kind)
    await world.assign(0, 1)
    world.heard()
    await world.lose(1)  # one that a revocation was under way for, then the rest
    await world.lose(0)
    assert world.heard() == [(name, {0, 1})]
    await world.assign()  # it may get something yet
    await world.assign(1)
    assert world.heard() == [("assigned", {1})]


@pytest.mark.asyncio
async def test_a_loss_that_fails_is_not_told_again() -> None:
    world = World(kind=Knowing)
    await world.assign(0)
    world.listener.fails = ["lost"]
    with pytest.raises(ValueError, match="lost"):
        await world.lose(0)
    await world.assign(0)
    assert world.heard()[2:] == [("lost", {0}), ("assigned", {0})]


@pytest.mark.asyncio
async def test_a_first_half_that_fails_is_repeated() -> None:
    world = World()
    await world.assign(0, 1)
    world.heard()
    world.listener.fails = ["revoked"]
    with pytest.raises(ValueError, match="revoked"):
        await world.revoke(1)
    assert world.inner.held
    await world.revoke(1)
    await world.assign()
    assert world.heard() == [("revoked", {0, 1})] * 2 + [("assigned", {0})]
    world.listener.fails = ["revoked"]
    with pytest.raises(ValueError, match="revoked"):
        await world.assign(2)
    await world.assign(2)
    assert world.heard() == [("revoked", {0})] * 2 + [("assigned", {0, 2})]
    assert not world.inner.held


@pytest.mark.asyncio
async def test_a_second_half_that_fails_repeats_the_pair() -> None:
    world = World("assigned")
    with pytest.raises(ValueError, match="assigned"):
        await world.assign(0)
    assert world.inner.held
    await world.assign(0)
    assert world.heard() == [
        ("revoked", set()),
        ("assigned", {0}),
        ("revoked", {0}),
        ("assigned", {0}),
    ]
    assert not world.inner.held


@pytest.mark.asyncio
async def test_a_second_half_that_fails_and_has_less_when_it_is_repeated() -> None:
    world = World("assigned")
    with pytest.raises(ValueError, match="assigned"):
        await world.assign(0, 1)
    world.heard()
    await world.revoke(1)
    await world.assign(0)
    assert world.heard() == [("revoked", {0, 1}), ("assigned", {0})]


@pytest.mark.asyncio
async def test_a_call_of_no_partition_that_fails_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = World("revoked")
    await world.assign(0)
    assert world.heard() == [("revoked", set()), ("assigned", {0})]
    world.listener.fails = ["assigned"]
    await world.revoke(0)
    await world.assign()
    assert world.heard() == [("revoked", {0}), ("assigned", set())]
    assert not world.inner.held
    assert [each.message for each in caplog.records] == [
        "the rebalance listener failed in on_partitions_revoked without partitions",
        "the rebalance listener failed in on_partitions_assigned without partitions",
    ]


@pytest.mark.asyncio
async def test_a_call_that_is_cancelled_is_repeated() -> None:
    world = World()
    task = asyncio.create_task(world.assign(0))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert world.inner.held
    await world.assign(0)
    assert world.heard() == [("revoked", set()), ("revoked", {0}), ("assigned", {0})]
    assert not world.inner.held


@pytest.mark.asyncio
async def test_another_listener_hears_what_the_former_one_had() -> None:
    world = World()
    await world.assign(0)
    world.heard()
    other = Listener(world)
    world.pairs.listen(other)
    assert world.inner.held
    await world.assign()  # as the consumer does for one that is new
    assert not world.inner.held
    assert world.heard() == []
    assert world.heard(other) == [("revoked", {0}), ("assigned", {0})]
    world.pairs.listen(other)
    await world.assign()
    assert world.heard(other) == [("revoked", {0}), ("assigned", {0})]


@pytest.mark.asyncio
async def test_another_listener_in_the_middle_of_a_pair_hears_both_halves() -> None:
    world = World()
    await world.assign(0, 1)
    await world.revoke(1)
    other = Listener(world)
    world.pairs.listen(other)
    await world.assign()
    assert other.calls == [("revoked", set()), ("assigned", {0})]


@pytest.mark.asyncio
async def test_another_listener_while_the_former_one_is_called() -> None:
    world = World()
    other = Listener(world)
    task = asyncio.create_task(world.assign(0))
    await asyncio.sleep(0)
    world.pairs.listen(other)
    await task
    assert world.inner.held
    await world.assign()
    assert other.calls == [("revoked", {0}), ("assigned", {0})]
    assert not world.inner.held


@pytest.mark.asyncio
async def test_nobody_listens() -> None:
    world = World()
    await world.assign(0)
    await world.revoke(0)
    world.pairs.listen(None)
    await world.assign(1)
    assert not world.inner.held
    await world.revoke(1)
    assert not world.inner.held
    world.pairs.listen(world.listener)
    await world.assign(2)
    assert world.heard()[-2:] == [("revoked", set()), ("assigned", {2})]


@pytest.mark.asyncio
async def test_a_subscription_that_is_made_again_hears_of_nothing_only_once() -> None:
    world = World()
    await world.assign(0)
    await world.revoke(0)  # unsubscribe
    world.pairs.listen(world.listener)
    await world.assign()
    await world.assign(0)
    assert world.heard() == [
        ("revoked", set()),
        ("assigned", {0}),
        ("revoked", {0}),
        ("assigned", {0}),
    ]


async def played(plan: list[tuple[str, set[int]]]) -> None:
    """What our consumer does, in any order that it may; each call is repeated until it succeeds."""
    world, owned = World(), set[int]()

    async def until_it_succeeds(call: Any, *numbers: int) -> None:
        for _ in range(4):
            try:
                await call(*numbers)
            except ValueError:
                assert world.inner.held, "nothing is read before it has succeeded"
            else:
                return
        raise AssertionError("it never succeeds")

    for step, numbers in plan:
        match step:
            case "target":
                if owned - numbers:
                    await until_it_succeeds(world.revoke, *owned - numbers)
                await until_it_succeeds(world.assign, *numbers - owned)
                owned = numbers
            case "lost":
                with suppress(ValueError):  # it is not called again
                    await world.lose(*owned)
                owned = set()
            case "subscribe":
                world.pairs.listen(world.listener)
                await until_it_succeeds(world.assign)
            case _:
                world.listener.fails = [step]
                continue
        told = [called for name, called in world.listener.calls if name == "assigned"]
        assert owned == (told[-1] if told else set()) or step == "lost" or not owned
        assert not world.inner.held or step == "lost" or not owned
    names = [name for name, _ in world.listener.calls]
    assert all(one != other or one == "revoked" for one, other in pairwise(names))
    known = set[int]()
    for name, called in world.listener.calls:
        if name == "assigned":
            known = called
        else:
            assert called == known or not called


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["target", "target", "lost", "subscribe", "revoked", "assigned"]),
            st.sets(st.integers(0, 3)),
        ),
        max_size=12,
    )
)
@settings(max_examples=examples(200), deadline=None)
def test_whatever_happens_pairs_tell_what_is_assigned(plan: list[tuple[str, set[int]]]) -> None:
    asyncio.run(played(plan))
