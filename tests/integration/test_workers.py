"""Workers of a Connect group over TCP: they share what is configured, whatever happens to them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

import pytest

from kip848_client.connect import AssignedItem, Worker
from kip848_client.connect.core import ConnectorTasks
from kip848_client.core.client_assignors import AssignorMetadata
from kip848_client.core.connect import (
    AssignmentMetadata,
    Computed,
    IncrementalCooperativeAssignor,
    NewWorkerAssignment,
    RebalanceReason,
    WorkerGroup,
)
from kip848_client.core.member import MemberState
from kip848_client.errors import ConfigError, LocalProtocolError, ProtocolUnsupported
from mock_coordinator import Fault, Match, MockBroker
from mock_coordinator.core.faults import Drop, Moment

pytestmark = pytest.mark.asyncio

CONFIG = {
    "group.consumer.min.session.timeout.ms": "500",
    "group.consumer.session.timeout.ms": "1500",
    "group.consumer.min.heartbeat.interval.ms": "20",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
}
CONNECTORS = {"a": 3, "b": 2}
ALL = frozenset(
    {
        *(AssignedItem(name) for name in CONNECTORS),
        *(
            AssignedItem(name, task, 0)
            for name, count in CONNECTORS.items()
            for task in range(count)
        ),
    }
)


class Items:
    """Starts and stops, and notices what runs twice."""

    running: dict[tuple[str, int], str]

    def __init__(self, name: str, running: dict[tuple[str, int], str]) -> None:
        self.name = name
        self.running = running
        self.calls: list[tuple[str, tuple[AssignedItem, ...]]] = []
        self.hold: asyncio.Event | None = None

    async def on_assigned(self, items: tuple[AssignedItem, ...]) -> None:
        self.calls.append(("assigned", items))
        for item in items:
            assert (item.connector, item.task) not in self.running
            self.running[item.connector, item.task] = self.name

    async def on_revoked(self, items: tuple[AssignedItem, ...]) -> None:
        self.calls.append(("revoked", items))
        if self.hold is not None:
            await self.hold.wait()
        self._drop(items)

    def on_lost(self, items: tuple[AssignedItem, ...]) -> None:
        self.calls.append(("lost", items))
        self._drop(items)

    def _drop(self, items: tuple[AssignedItem, ...]) -> None:
        for item in items:
            del self.running[item.connector, item.task]


class Group:
    """Workers on one broker."""

    def __init__(self, broker: MockBroker) -> None:
        self.broker = broker
        self.running: dict[tuple[str, int], str] = {}
        self.workers: dict[str, Worker] = {}
        self.items: dict[str, Items] = {}

    async def join(
        self, name: str, *, instead: Mapping[str, Callable[[Any], Any]] | None = None, **more: Any
    ) -> Worker:
        items = self.items[name] = Items(name, self.running)
        vars(items).update(instead or {})
        settings: dict[str, Any] = {
            "bootstrap_servers": self.broker.bootstrap,
            "group_id": "workers",
            "rest_advertised_url": f"http://{name}/",
            "assignors": (IncrementalCooperativeAssignor(scheduled_rebalance_max_delay_ms=300),),
            "session_timeout_ms": 1_500,
            "task_shutdown_graceful_timeout_ms": 500,
            **more,
        }
        worker = self.workers[name] = Worker(CONNECTORS, items, **settings)
        await worker.start()
        return worker

    async def until(self, holds: Callable[[], bool]) -> None:
        await self.broker.wait_for(holds)

    def shared(self, *names: str) -> bool:
        """Whether these run everything, each its part."""
        parts = [self.workers[name].assigned for name in names]
        return all(parts) and len(self.running) == len(ALL) == sum(map(len, parts))


@asynccontextmanager
async def group() -> AsyncGenerator[Group]:
    async with MockBroker(config=CONFIG) as broker:
        made = Group(broker)
        try:
            yield made
        finally:
            await asyncio.gather(*(worker.stop() for worker in made.workers.values()))


async def test_workers_share_and_take_over() -> None:
    async with group() as workers:
        await workers.join("w1")
        await workers.until(lambda: workers.workers["w1"].assigned == ALL)
        await workers.join("w2")
        await workers.join("w3")
        await workers.until(lambda: workers.shared("w1", "w2", "w3"))
        assert workers.workers["w2"].leader_url in {f"http://w{n}/" for n in (1, 2, 3)}

        await workers.workers.pop("w2").stop()
        assert workers.items["w2"].calls[-1][0] == "revoked"
        await workers.until(lambda: workers.shared("w1", "w3"))


async def test_an_item_is_started_when_another_worker_has_stopped_it() -> None:
    async with group() as workers:
        await workers.join("w1", task_shutdown_graceful_timeout_ms=5_000, session_timeout_ms=20_000)
        await workers.until(lambda: workers.workers["w1"].assigned == ALL)
        hold = workers.items["w1"].hold = asyncio.Event()
        await workers.join("w2")
        await workers.until(lambda: workers.items["w1"].calls[-1][0] == "revoked")
        assert not workers.workers["w2"].assigned
        hold.set()
        await workers.until(lambda: workers.shared("w1", "w2"))


async def test_a_listener_that_does_not_stop_is_cut_off(caplog: pytest.LogCaptureFixture) -> None:
    async with group() as workers:
        await workers.join("w1", task_shutdown_graceful_timeout_ms=100)
        await workers.until(lambda: workers.workers["w1"].assigned == ALL)
        workers.items["w1"].hold = asyncio.Event()
        async with asyncio.timeout(5):
            await workers.workers["w1"].stop()
    assert "did not return within 100 ms and was cancelled" in caplog.text


async def test_a_new_configuration_is_shared_anew() -> None:
    async with group() as workers:
        await workers.join("w1")
        await workers.join("w2")
        await workers.until(lambda: workers.shared("w1", "w2"))
        new: dict[str, int | ConnectorTasks] = {"a": ConnectorTasks(1, 1), "c": 2}
        for worker in workers.workers.values():
            worker.reconfigure(new, version=2)
        await workers.until(
            lambda: sorted(workers.running) == [("a", -1), ("a", 0), ("c", -1), ("c", 0), ("c", 1)]
        )
        with pytest.raises(ConfigError, match="knows version 2 already"):
            workers.workers["w1"].reconfigure(new, version=2)


async def test_an_assignor_that_raises_costs_nobody_anything(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Failing(IncrementalCooperativeAssignor):
        left = 2

        def assign(self, group: WorkerGroup, memory: object = None) -> Computed:
            if self.left:
                self.left -= 1
                raise RuntimeError("not today")
            return super().assign(group, memory)

    async with group() as workers:
        await workers.join("w1", assignors=(Failing(),))
        await workers.until(lambda: workers.workers["w1"].assigned == ALL)
    assert "assign() raised RuntimeError: not today" in caplog.text


async def test_an_assignor_that_never_returns_is_given_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Slow(IncrementalCooperativeAssignor):
        is_first = True

        async def assign(  # type: ignore[override]  # the protocol allows a coroutine
            self, group: WorkerGroup, memory: object = None
        ) -> Computed:
            if self.is_first:
                self.is_first = False
                await asyncio.Event().wait()
            return super().assign(group, memory)

    async with group() as workers:
        await workers.join("w1", assignors=(Slow(),), rebalance_timeout_ms=300)
        await workers.until(lambda: workers.workers["w1"].assigned == ALL)
    assert "was not installed within the rebalance timeout" in caplog.text


async def test_what_an_assignor_does_when_told_holds_nobody_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    told: list[NewWorkerAssignment] = []

    class Listening(IncrementalCooperativeAssignor):
        async def on_assignment(  # type: ignore[override]  # the protocol allows a coroutine
            self, assignment: NewWorkerAssignment
        ) -> None:
            told.append(assignment)
            if len(told) == 1:
                raise RuntimeError("cannot hear")
            await asyncio.Event().wait()

    async with group() as workers:
        await workers.join("w1", assignors=(Listening(),), task_shutdown_graceful_timeout_ms=50)
        await workers.until(lambda: workers.workers["w1"].assigned == ALL)
    assert sorted(told[-1].items.connectors) == ["a", "b"]
    assert len(told[-1].items.tasks) == 5
    assert "on_assignment raised RuntimeError: cannot hear" in caplog.text
    assert "on_assignment did not return within 50 ms and was cancelled" in caplog.text


class ByShare(IncrementalCooperativeAssignor):
    """Says a share, and hears whose share the group has."""

    name = "by-share"
    minimum_version = maximum_version = 3

    def __init__(self, share: str) -> None:
        super().__init__(scheduled_rebalance_max_delay_ms=300)
        self.share = share
        self.reason = 0
        self.told: list[NewWorkerAssignment] = []

    def metadata(self) -> AssignorMetadata:
        return AssignorMetadata(self.share.encode(), 3, self.reason)

    def assign(self, group: WorkerGroup, memory: object = None) -> Computed:
        target, after = super().assign(group, memory)
        said = sorted((each.metadata.data, each.metadata.reason) for each in group.workers.values())
        metadata = {each: AssignmentMetadata(repr(said).encode()) for each in group.workers}
        return Computed(replace(target, metadata=metadata), after)

    def on_assignment(self, assignment: NewWorkerAssignment) -> None:
        self.told.append(assignment)


async def test_a_worker_says_something_else_and_all_hear_what_comes_of_it() -> None:
    async with group() as workers:
        one, two = ByShare("half"), ByShare("all")
        first = await workers.join("w1", assignors=(one,))
        second = await workers.join("w2", assignors=(two,))
        await workers.until(lambda: workers.shared("w1", "w2"))

        def both_heard(*said: tuple[bytes, int]) -> bool:
            wanted = repr(sorted(said)).encode()
            return all(bool(each.told) and each.told[-1].data == wanted for each in (one, two))

        await workers.until(lambda: both_heard((b"half", 0), (b"all", 0)))
        one.share = "none"
        first.rebalance(70)
        await workers.until(lambda: both_heard((b"none", 70), (b"all", 0)))
        two.reason = 99
        second.rebalance()
        await workers.until(lambda: both_heard((b"none", 0), (b"all", 99)))
        first.rebalance()
        await workers.until(
            lambda: both_heard((b"none", int(RebalanceReason.WORKER_CHANGED)), (b"all", 0))
        )
        told = one.told[-1]
        assert (told.version, told.error, told.member_id) == (3, 0, first.member_id)
        assert workers.shared("w1", "w2")


async def test_a_request_for_an_assignment_that_cannot_be_meant_is_refused() -> None:
    wrong: list[Any] = [0, -1, 128, True, "64", 64.0, None]
    async with group() as workers:
        assignor = ByShare("half")
        worker = await workers.join("w1", assignors=(assignor,))
        await workers.until(lambda: worker.assigned == ALL)
        for reason in wrong:
            with pytest.raises(ConfigError, match="expected a number from 1 to 127"):
                worker.rebalance(reason)
        told = len(assignor.told)
        assignor.reason = 1_000
        with pytest.raises(ConfigError, match="reason = 1000"):
            worker.rebalance(64)
        assert len(assignor.told) == told
        await worker.stop()
        with pytest.raises(LocalProtocolError):
            worker.rebalance(64)


async def test_a_broker_without_such_groups_is_named() -> None:
    async with MockBroker(draft_protocols=False) as broker:
        worker = Worker(
            {},
            Items("w", {}),
            group_id="g",
            bootstrap_servers=broker.bootstrap,
            group_protocol="connect",
        )
        with pytest.raises(ProtocolUnsupported, match="workers cannot share connectors there"):
            await worker.start()


async def test_an_error_that_ends_a_worker_is_raised_by_run() -> None:
    async with group() as workers:
        await workers.join("w1", group_instance_id="one")
        await workers.until(lambda: workers.workers["w1"].assigned == ALL)
        second = await workers.join("w2", group_instance_id="one")
        async with asyncio.timeout(5):
            with pytest.raises(Exception, match="UNRELEASED_INSTANCE_ID"):
                await second.run()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (({"a": -1}, Items("w", {})), "tasks of a = -1"),
        (({"a": "2"}, Items("w", {})), "tasks of a = '2'"),
        (({"": 1}, Items("w", {})), "expected a name"),
        ((["a"], Items("w", {})), "expected tasks by connector"),
        (({"a": 1}, object()), "has no method on_assigned"),
        (({"a" * 32_768: 1}, Items("w", {})), "32768 bytes"),
        (({"\ud800": 1}, Items("w", {})), "surrogates not allowed"),
    ],
)
async def test_what_cannot_be_meant_is_refused(arguments: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Worker(*arguments, group_id="g")


class Talkative(IncrementalCooperativeAssignor):
    def metadata(self) -> AssignorMetadata:
        return AssignorMetadata(bytes(1_000_001), 2)


class OfNoUse(IncrementalCooperativeAssignor):
    def metadata(self) -> AssignorMetadata:
        raise RuntimeError("nothing to say")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"version": -1}, "version = -1"),
        ({"version": 2**63}, "version = 9223372036854775808"),
        ({"version": "1"}, "version = '1'"),
        ({"assignors": IncrementalCooperativeAssignor()}, "expected a list"),
        ({"assignors": [IncrementalCooperativeAssignor]}, "is a class"),
        ({"assignors": [object()]}, "is no ConnectAssignor"),
        ({"assignors": [IncrementalCooperativeAssignor()] * 2}, "two assignors of the name"),
        ({"assignors": [OfNoUse()]}, "raised RuntimeError: nothing to say"),
        ({"assignors": [Talkative()]}, "1000001 bytes of metadata"),
    ],
)
async def test_options_that_cannot_be_meant_are_refused(options: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Worker({"a": 1}, Items("w", {}), group_id="g", **options)


@pytest.mark.parametrize("method", ["on_assigned", "on_revoked"])
async def test_a_listener_that_does_not_let_itself_be_cancelled_is_left_alone(
    method: str, caplog: pytest.LogCaptureFixture
) -> None:
    may_end = asyncio.Event()

    async def stubborn(_items: Any) -> None:
        while not may_end.is_set():
            try:
                await may_end.wait()
            except asyncio.CancelledError:
                continue

    async with group() as workers:
        settings = {"task_shutdown_graceful_timeout_ms": 50, "rebalance_timeout_ms": 200}
        await workers.join("w1", instead={method: stubborn}, **settings)
        await workers.until(lambda: workers.workers["w1"].assigned == ALL)
        async with asyncio.timeout(4):
            await workers.workers["w1"].stop()
        may_end.set()
    assert "although it was cancelled; it is left alone" in caplog.text


async def test_a_start_that_hangs_does_not_hold_up_a_loss() -> None:
    async with group() as workers:
        started, lost = asyncio.Event(), asyncio.Event()

        async def hang(_items: Any) -> None:
            started.set()
            await asyncio.Event().wait()

        def on_lost(_items: Any) -> None:
            lost.set()

        await workers.join("w1", instead={"on_assigned": hang, "on_lost": on_lost})
        async with asyncio.timeout(6):
            await started.wait()
            workers.broker.faults.add(
                Fault(Drop(Moment.REQUEST), Match(api="ConnectGroupHeartbeat"), times=None)
            )
            await lost.wait()


async def test_a_start_that_hangs_does_not_hold_up_the_end() -> None:
    async with group() as workers:
        started = asyncio.Event()

        async def hang(_items: Any) -> None:
            started.set()
            await asyncio.Event().wait()

        await workers.join("w1", instead={"on_assigned": hang})
        async with asyncio.timeout(4):
            await started.wait()
            await workers.workers["w1"].stop()


async def test_nothing_is_to_be_stopped_that_was_never_started() -> None:
    async with group() as workers:
        await workers.join("w1", version=2)
        await workers.until(lambda: workers.workers["w1"].assigned == ALL)
        late = await workers.join("w2")
        await workers.until(lambda: late.leader_url == "http://w1/")
        await late.stop()
        assert workers.items["w2"].calls == []


async def test_a_worker_that_is_stopped_while_it_starts_leaves_nothing_behind() -> None:
    async with MockBroker(config=CONFIG) as broker:
        for turns in range(0, 60, 3):
            worker = Worker({}, Items("w", {}), group_id="g", bootstrap_servers=broker.bootstrap)
            starting = asyncio.create_task(worker.start())
            for _ in range(turns):
                await asyncio.sleep(0)
            await worker.stop()
            with suppress(LocalProtocolError):
                await starting
            names = [task.get_name() for task in asyncio.all_tasks()]
            assert "kip848-worker" not in names
            assert worker.state is MemberState.UNSUBSCRIBED


async def test_a_listener_may_not_stop_its_own_worker() -> None:
    said: list[str] = []

    async with group() as workers:

        async def stop(_items: Any) -> None:
            try:
                await workers.workers["w1"].stop()
            except LocalProtocolError as err:
                said.append(str(err))

        await workers.join("w1", instead={"on_assigned": stop})
        await workers.until(lambda: bool(said))
    assert said == ["stop() would wait for the listener that calls it; stop from another task"]


async def test_a_worker_lives_in_one_event_loop() -> None:
    async with group() as workers:
        worker = await workers.join("w1")

        def elsewhere() -> None:
            with pytest.raises(LocalProtocolError, match="another event loop"):
                asyncio.run(worker.stop())
            with pytest.raises(LocalProtocolError, match="another event loop"):
                asyncio.run(worker.run())
            with pytest.raises(LocalProtocolError, match="another event loop"):
                worker.reconfigure({}, version=2)

        await asyncio.to_thread(elsewhere)


async def test_calls_in_the_wrong_order() -> None:
    worker = Worker({"a": 1}, Items("w", {}), group_id="g", bootstrap_servers="127.0.0.1:1")
    with pytest.raises(LocalProtocolError, match="not started"):
        await worker.run()
    with pytest.raises(LocalProtocolError, match="not started"):
        worker.reconfigure({}, version=2)
    await worker.stop()
    with pytest.raises(LocalProtocolError, match="was stopped before"):
        await worker.start()
    async with group() as workers:
        again = await workers.join("w1")
        with pytest.raises(LocalProtocolError, match="was started before"):
            await again.start()
        await again.stop()
        with pytest.raises(LocalProtocolError, match="is closed"):
            again.reconfigure({}, version=2)
        await again.run()
