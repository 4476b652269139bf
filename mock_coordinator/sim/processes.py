"""The consumers of a world: plans, and the process that each of them has at the moment.

A consumer whose process ended unasked is started again after a while, as any service manager would
do.
"""

from __future__ import annotations

from dataclasses import dataclass

from kip848_client.core.member import LeaveMode
from kip848_client.core.types import GroupId
from mock_coordinator.sim.context import SimContext
from mock_coordinator.sim.process import MemberPlan, MemberProcess

__all__ = ["Consumer", "Processes"]

RESTART_MS_MAX = 5_000


@dataclass(slots=True, eq=False)
class Consumer:
    """A plan, its present process, and whether it is to run and be subscribed."""

    plan: MemberPlan
    wanted: bool = True
    subscribed: bool = True
    lives: int = 0
    process: MemberProcess | None = None


class Processes:
    """All consumers, in the order in which they came."""

    def __init__(self, context: SimContext) -> None:
        self._context = context
        self._rng = context.kernel.rng("population")
        self.consumers: list[Consumer] = []

    @property
    def running(self) -> list[Consumer]:
        """Those that have a process."""
        return [c for c in self.consumers if c.process is not None]

    @property
    def alive(self) -> list[MemberProcess]:
        """Their processes."""
        return [c.process for c in self.consumers if c.process is not None]

    def names(self) -> list[str]:
        """The network names of those that have a process."""
        return [c.plan.name for c in self.running]

    def add(
        self, group_id: GroupId, topics: frozenset[str], pattern: str | None, instance: str = ""
    ) -> Consumer:
        """A new consumer, started at once."""
        options, rng = self._context.options, self._rng
        number = len(self.consumers)
        instance_id = instance or (f"i{number}" if rng.random() < options.static else None)
        assignor = self._wish(group_id)
        plan = MemberPlan(
            name=f"m{number}",
            group_id=group_id,
            instance_id=instance_id,
            assignor=assignor,
            auto_commit=rng.random() < options.auto_commit,
            topics=topics,
            pattern=pattern,
        )
        consumer = Consumer(plan)
        self.consumers.append(consumer)
        self.start(consumer)
        return consumer

    def _wish(self, group_id: GroupId) -> str | None:
        """The assignor that a new member asks for.

        In Kafka 4.4.0 members of one group must agree: when the votes are even, the election goes
        to the member whose heartbeat is being handled, each such change moves the group epoch, and
        the group never comes to rest (so does the real broker).
        """
        wish = self._context.options.assignor
        if wish != "any":
            return wish
        if self._context.profile.assignor_change_bumps:
            return ("uniform", "range")[int(group_id[1:]) % 2]
        return self._rng.choice(("uniform", "range", None))

    def start(self, consumer: Consumer) -> None:
        """Give it a process, unless it has one."""
        if consumer.process is not None or not consumer.wanted:
            return
        consumer.lives += 1
        consumer.subscribed = True
        context, plan = self._context, consumer.plan
        self._probe_return(plan)

        def ended(process: MemberProcess) -> None:
            if consumer.process is process or consumer.process is None:
                consumer.process = None
                self._start_later(consumer)

        consumer.process = MemberProcess(context, plan, consumer.lives, ended)

    def _start_later(self, consumer: Consumer) -> None:
        if consumer.wanted:
            self._context.kernel.after(
                self._rng.randint(1, RESTART_MS_MAX), lambda: self.start(consumer)
            )

    def _probe_return(self, plan: MemberPlan) -> None:
        if plan.instance_id is None:
            return
        for member in self._context.checkers.groups.group(plan.group_id).members.values():
            if member.subscription.instance_id == plan.instance_id and member.epoch == -2:
                self._context.probes.reached("static -2 return")

    def heal(self) -> None:
        """All processes go on, and those that are to run and do not are started."""
        for consumer in self.consumers:
            process = consumer.process
            if process is None:
                self.start(consumer)
                continue
            process.wake()
            if process.is_alive and not consumer.wanted:
                process.leave(LeaveMode.LEAVE_GROUP, final=True)
            elif process.is_alive:
                process.application.hurry()
