"""One life of a member: the real ``GroupCore``, driven by virtual time and a bad network.

``Membership`` drives it, the user is an ``Application``. At any moment a process can be paused
(nothing of it runs, everything waits for it), and it can die.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from kip848_client.core.group import Input
from kip848_client.core.member import (
    LeaveMode,
    LeaveRequested,
    MemberCore,
    MemberState,
    Subscribed,
)
from kip848_client.core.offsets import OffsetTracker
from kip848_client.core.types import GroupId, MemberId, TopicIdPartition
from mock_coordinator.sim.application import Application
from mock_coordinator.sim.context import SimContext, server_name
from mock_coordinator.sim.membership import MemberConfig, Membership
from mock_coordinator.sim.process_life import ProcessLife

__all__ = ["MemberPlan", "MemberProcess"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberPlan:
    """What one consumer is configured to do, over all its lives."""

    name: str
    group_id: GroupId
    instance_id: str | None
    assignor: str | None
    auto_commit: bool
    topics: frozenset[str]
    pattern: str | None


class MemberProcess(ProcessLife):
    """One process. ``life`` counts the processes of a plan; ``on_exit`` is called when it ended."""

    def __init__(
        self,
        context: SimContext,
        plan: MemberPlan,
        life: int,
        on_exit: Callable[[MemberProcess], None],
    ) -> None:
        super().__init__(context.kernel)
        self.context = context
        self.plan = plan
        self.name = f"{plan.name}.{life}"
        self.member_id = MemberId(
            f"{plan.name}-{life}-{context.kernel.rng('ids').getrandbits(32):08x}"
        )
        self.topics = plan.topics
        self.pattern = plan.pattern
        self.leaving = False
        self.rng = context.kernel.rng(f"member/{plan.name}")
        self._tracker = OffsetTracker()
        config = MemberConfig(
            member_id=self.member_id,
            instance_id=plan.instance_id,
            assignor=plan.assignor,
            auto_commit=plan.auto_commit,
        )
        nodes = range(1, context.options.brokers + 1)
        wires = context.wires(plan.name, server_name, lambda: nodes)
        any_node = replace(wires, nodes=lambda: (1,))  # where one is down, all are
        self._membership = Membership(self, any_node, config, self._tracker)
        self._on_exit = on_exit
        self.application = Application(self, wires, self._tracker, auto_commit=plan.auto_commit)
        self._membership.join(self.application)
        context.checkers.enter(self)
        context.tell(self.name, "start", f"{self.member_id} {plan.instance_id or ''}")
        self.subscribe(plan.topics, plan.pattern)
        self.application.start()

    # -- what the checkers see ------------------------------------------------------------------

    @property
    def group_id(self) -> GroupId:
        """The group of its plan."""
        return self.plan.group_id

    @property
    def core(self) -> MemberCore:
        """Its member, for looking at."""
        return self._membership.member

    @property
    def state(self) -> MemberState:
        """Where its core says it is."""
        return self.core.state

    @property
    def releasing(self) -> bool:
        """Whether its revoked callback runs."""
        return self.application.releasing

    @property
    def last_commit_ms(self) -> int:
        """When it had a commit under way last."""
        return self._membership.requests.last_commit_ms

    @property
    def held(self) -> frozenset[TopicIdPartition]:
        """What its application has been given and has not given back."""
        return self.application.held if self.is_alive else frozenset()

    # -- life --------------------------------------------------------------------------------

    def on_sleep(self, how_long: str) -> None:
        """It is about to stand still."""
        self.context.tell(self.name, "pause", how_long)

    def on_wake(self, waiting: int) -> None:
        """It goes on; the group may have given it up."""
        self.context.tell(self.name, "resume", f"{waiting} waiting")
        if self.held and self.context.checkers.groups.member(self.group_id, self.member_id) is None:
            self.context.probes.reached("paused member removed")

    def die(self, why: str) -> None:
        """End at once, without a word."""
        if not self.is_alive:
            return
        self.context.tell(self.name, "die", why)
        self.is_alive = False
        self._membership.close()
        self.application.records.close()
        self.context.checkers.leave(self)
        self._on_exit(self)

    # -- the user ----------------------------------------------------------------------------

    def subscribe(self, topics: frozenset[str], pattern: str | None) -> None:
        """Replace the subscription."""
        if self.leaving or self.core.state is MemberState.FATAL:
            return
        self.topics, self.pattern = topics, pattern
        shown = ",".join(sorted(topics)) + (f" /{pattern}/" if pattern else "")
        self.context.tell(self.name, "subscribe", shown)
        if pattern is not None:
            self.context.probes.reached("regex subscription")
        if self.core.state in (MemberState.PREPARE_LEAVING, MemberState.LEAVING):
            self.context.probes.reached("resubscribed while leaving")
        self.context.checkers.early_heartbeats.cause(self)
        self.feed(Subscribed(topics, pattern))

    def leave(self, mode: LeaveMode, *, final: bool) -> None:
        """Unsubscribe, or close and end."""
        if self.leaving:
            return
        self.leaving = final
        self.context.tell(self.name, "close" if final else "unsubscribe", mode.value)
        deadline_ms = self.context.kernel.now_ms + 30_000
        self.feed(LeaveRequested(mode, deadline_ms, flush=self.plan.auto_commit, final=final))

    # -- the core ----------------------------------------------------------------------------

    def feed(self, event: Input) -> None:
        """Give the core an event, and perform what it asks for."""
        self._membership.feed(event)
        if self.is_alive and not self._membership.is_stepping:
            self._end_if_done()

    def _end_if_done(self) -> None:
        if not self._membership.group.listener_is_idle:
            return
        if self.core.closed:
            self.die("closed")
        elif self.core.state is MemberState.FATAL:
            self.die(f"fatal: {self.core.fatal_error}")
