"""One process with one processor: consumer, producer, and what drives them. It may sleep: then
nothing happens in it until it wakes up, and then everything at once. And it may die."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from kip848_client.core.group import Input
from kip848_client.core.member import LeaveMode, LeaveRequested, MemberState, Subscribed
from kip848_client.core.offsets import OffsetTracker
from kip848_client.core.produce import CloseRequested, ProduceSettings, StartRequested
from kip848_client.core.produce import Command as ProducerCommand
from kip848_client.core.types import GroupId, MemberId, TopicIdPartition
from kip848_client.errors import CommitInDoubt, Kip848Error, ProducerFenced
from kip848_client.processor.core import StopRequested
from mock_coordinator.sim.exactly_once.calls import FunctionRaised
from mock_coordinator.sim.exactly_once.consuming import Consuming
from mock_coordinator.sim.exactly_once.context import ProcessContext
from mock_coordinator.sim.exactly_once.driver import Driver
from mock_coordinator.sim.membership import MemberConfig, Membership
from mock_coordinator.sim.nodes import node_name
from mock_coordinator.sim.process_life import ProcessLife
from mock_coordinator.sim.producing.side import ProducerSide

__all__ = ["GROUP", "Plan", "Process"]

GROUP: Final = GroupId("g")
_START_MS: Final = 5_000
_LEAVE_MS: Final = 5_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What the processes of one name have in common."""

    transactional_id: str
    instance_id: str | None
    topics: frozenset[str]


class Process(ProcessLife):
    """``ended`` is called when it is gone, but not if it was killed."""

    def __init__(
        self,
        context: ProcessContext,
        name: str,
        plan: Plan,
        nodes: Sequence[int],
        ended: Callable[[Process], None],
    ) -> None:
        super().__init__(context.kernel)
        self.context: Final = context
        self.name: Final = name
        self.plan: Final = plan
        self.group_id: Final = GROUP
        self.member_id: Final = MemberId(f"{name}-{context.kernel.rng('ids').getrandbits(32):08x}")
        self.instance_id: Final = plan.instance_id
        self.rng: Final = context.kernel.rng(f"process {name}")
        self._ended = ended
        self._is_ending = False
        self._close_ticket: int | None = None
        self._start_ticket: int | None = None
        self.error: Exception | None = None
        """What its processor ended with."""
        wires = context.wires(name, node_name, lambda: nodes)
        tracker = OffsetTracker()
        self.driver: Final = Driver(
            context, name, self.rng, enter=self.enter, ended=self._run_ended
        )
        config = MemberConfig(
            member_id=self.member_id,
            instance_id=plan.instance_id,
            assignor=context.options.assignor,
        )
        self._membership = Membership(self, wires, config, tracker)
        self.consumer: Final = Consuming(self, wires, tracker, self.driver)
        self._membership.join(self.consumer)
        self.producer: Final = ProducerSide(
            context,
            self._produce_settings(),
            wires,
            enter=self.enter,
            told=self._told,
            room=self._has_room,
            saw=self._saw,
        )
        self.driver.attach(self.consumer, self.producer)
        context.checks.members[name] = self.member_id
        context.checkers.enter(self)
        context.tell(name, "born", plan.transactional_id)
        self._start()

    def _produce_settings(self) -> ProduceSettings:
        options = self.context.options
        return ProduceSettings(
            transactional_id=self.plan.transactional_id,
            transaction_timeout_ms=options.transaction_timeout_ms,
            linger_ms=options.linger_ms,
            batch_bytes=options.batch_bytes,
            buffer_bytes=options.buffer_bytes,
            in_flight_max=options.in_flight_max,
            delivery_timeout_ms=options.delivery_timeout_ms,
            request_timeout_ms=options.request_timeout_ms,
        )

    # -- what the checkers see ---------------------------------------------------------------

    @property
    def state(self) -> MemberState:
        """Where its membership is."""
        return self._membership.member.state

    @property
    def epoch(self) -> int | None:
        """For commits; ``None`` out of the group."""
        return self._membership.member.commit_epoch

    @property
    def failure(self) -> Kip848Error | None:
        """What has ended the membership."""
        if self.state is not MemberState.FATAL:
            return None
        return self._membership.member.fatal_error or Kip848Error("the membership has ended")

    @property
    def last_commit_ms(self) -> int:
        """When it had a plain commit under way last: never."""
        return self._membership.requests.last_commit_ms

    @property
    def releasing(self) -> bool:
        """Whether its revoked callback runs."""
        return self.consumer.is_releasing

    @property
    def held(self) -> frozenset[TopicIdPartition]:
        """What its application has been given and has not given back."""
        return self.consumer.held if self.is_alive else frozenset()

    # -- life --------------------------------------------------------------------------------

    def feed(self, event: Input) -> None:
        """Give the group core an event."""
        self._membership.feed(event)

    def on_sleep(self, how_long: str) -> None:
        """It is about to stand still."""
        self.context.tell(self.name, "sleep", how_long)

    def on_wake(self, waiting: int) -> None:
        """It goes on; the group may have given it up."""
        del waiting
        if self.held and self.context.checkers.groups.member(GROUP, self.member_id) is None:
            self.context.probes.reached("a zombie woke up")

    def die(self) -> None:
        """Without a word."""
        if not self.is_alive:
            return
        self.is_alive = False
        self.driver.close()
        self._membership.close()
        self.consumer.records.close()
        self.producer.close()
        self.context.checkers.leave(self)
        self.context.tell(self.name, "gone")

    # -- start, stop -------------------------------------------------------------------------

    def _start(self) -> None:
        options = self.context.options
        level = self.rng.randint(1, 2) if options.level > 2 else options.level
        self.context.probes.reached(f"transactions V{level}")
        self.producer.learn(level)
        deadline_ms = self.context.kernel.now_ms + _START_MS

        def make(ticket: int) -> StartRequested:
            self._start_ticket = ticket
            return StartRequested(ticket, deadline_ms)

        self.producer.ask(make, deadline_ms)
        self.feed(Subscribed(self.plan.topics, None))
        self.context.checkers.early_heartbeats.cause(self)

    def _told(self, ticket: int, error: Kip848Error | None) -> None:
        if ticket == self._start_ticket:
            if error is None:
                self.after(0, self.driver.run)
            else:
                self._run_ended(error)
        elif ticket == self._close_ticket:
            self._close_ticket = None
            self.after(0, self._die_if_done)
        else:
            self.driver.transacting.told(ticket, error)

    def _has_room(self) -> None:
        self.driver.transacting.room()

    def _saw(self, command: ProducerCommand) -> None:
        self.driver.transacting.saw(command)

    def stop(self) -> None:
        """In good order."""
        if not self._is_ending:
            within_ms = self.rng.choice((200, 2_000, 30_000))
            self.driver.feed(StopRequested(self.context.kernel.now_ms + within_ms))

    def _run_ended(self, error: Exception | None) -> None:
        """``run`` has returned: close consumer and producer."""
        if self._is_ending:
            return
        context = self.context
        self._is_ending = True
        self.error = error
        context.tell(self.name, "ended", str(error or ""))
        if _is_fenced(error):
            context.probes.reached("fenced")
        if isinstance(error, FunctionRaised):
            context.probes.reached("ended by its function")
        deadline_ms = context.kernel.now_ms + _LEAVE_MS
        self.feed(LeaveRequested(LeaveMode.DEFAULT, deadline_ms, flush=False, final=True))

        def make(ticket: int) -> CloseRequested:
            self._close_ticket = ticket
            return CloseRequested(ticket, deadline_ms)

        self.producer.ask(make, deadline_ms)
        self.after(_LEAVE_MS, self._die_and_tell)
        self.after(0, self._die_if_done)

    def _die_if_done(self) -> None:
        if self._close_ticket is None and self._membership.member.closed:
            self._die_and_tell()
        else:
            self.after(100, self._die_if_done)

    def _die_and_tell(self) -> None:
        if self.is_alive:
            self.die()
            self._ended(self)


def _is_fenced(error: Exception | None) -> bool:
    """Whether a processor ended because another one has its transactional id."""
    cause = error.cause if isinstance(error, CommitInDoubt) else error
    return isinstance(cause, ProducerFenced)
