"""What people do to the groups of a world while everything else goes wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kip848_client.core.member import LeaveMode
from kip848_client.core.types import GroupId
from mock_coordinator.sim.context import SimContext
from mock_coordinator.sim.operator import Operator
from mock_coordinator.sim.processes import Consumer, Processes
from mock_coordinator.sim.schedule import Schedule

__all__ = ["Workload"]

TOPICS_MAX: Final = 6
CONSUMERS_MAX: Final = 9
PAUSE_MS_MAX: Final = 90_000
AWAY_MS_MAX: Final = 30_000
CLEAN_UPS_MAX: Final = 60
"""How many times the deletion of a group is tried, once a second."""


class Workload:
    """Does something every now and then until ``stop``."""

    def __init__(self, context: SimContext, operator: Operator, processes: Processes) -> None:
        self._context = context
        self._operator = operator
        self._processes = processes
        self._rng = context.kernel.rng("workload")
        self._schedule = Schedule(context.kernel, self._rng)
        self._acts: list[tuple[int, Callable[[], None]]] = [
            (4, self._change_subscription),
            (1, self._unsubscribe),
            (4, self._restart_process),
            (2, self._remove),
            (3, self._add),
            (4, self._pause),
            (1, self._replace_static),
            (1, self._create_topic),
            (2, self._grow_topic),
            (1, self._delete_topic),
            (1, self._recreate_topic),
            (1, self._configure_group),
            (1, self._delete_group),
        ]

    # -- phases ------------------------------------------------------------------------------

    def set_up(self) -> None:
        """Topics and the first members."""
        options = self._context.options
        for number in range(options.topics):
            self._operator.create_topic(f"t{number}")
        for _ in range(options.members * options.groups):
            self._context.kernel.after(self._rng.randint(0, 8_000), self._add)
        self._produce()

    def start(self) -> None:
        """From now on."""
        self._schedule.repeat(self._context.options.act_every_ms, self._act)

    def _produce(self) -> None:
        """Go on writing records until there are no more acts."""
        if not self._schedule.over:
            self._operator.produce()
            longest_ms = 2 * self._context.options.produce_every_ms
            delay_ms = self._context.kernel.rng("produce").randint(1, longest_ms)
            self._context.kernel.after(delay_ms, self._produce)

    def stop(self) -> None:
        """No new acts. Those that were begun are brought to their end by healing."""
        self._schedule.stop()

    def _act(self) -> None:
        weights = [weight for weight, _ in self._acts]
        self._rng.choices(self._acts, weights)[0][1]()

    # -- choices -----------------------------------------------------------------------------

    def _group(self) -> GroupId:
        return GroupId(f"g{self._rng.randrange(self._context.options.groups)}")

    def _subscription(self) -> tuple[frozenset[str], str | None]:
        """Mostly names, sometimes of topics that do not exist; or a pattern; now and then both."""
        rng = self._rng
        names = [f"t{n}" for n in range(TOPICS_MAX)]
        topics = frozenset(rng.sample(names, rng.randint(1, 3)))
        if rng.random() < 0.6:
            topics = frozenset(topic.name for topic in self._operator.topics) or topics
        pattern = None
        if rng.random() < self._context.options.pattern:
            pattern = rng.choice(("t.*", "t[0-2]", "t[13]", "nothing"))
            if rng.random() < 0.7:
                topics = frozenset()
        return topics, pattern

    def _somebody(self) -> Consumer | None:
        running = [c for c in self._processes.running if c.wanted]
        return self._rng.choice(running) if running else None

    # -- acts --------------------------------------------------------------------------------

    def _add(self) -> None:
        if len(self._processes.running) < CONSUMERS_MAX:
            topics, pattern = self._subscription()
            self._processes.add(self._group(), topics, pattern)

    def _change_subscription(self) -> None:
        consumer = self._somebody()
        if consumer is not None and consumer.process is not None:
            topics, pattern = self._subscription()
            process = consumer.process
            consumer.subscribed = True
            process.enter(lambda: process.subscribe(topics, pattern))

    def _unsubscribe(self) -> None:
        consumer = self._somebody()
        if consumer is None or consumer.process is None:
            return
        process = consumer.process
        process.enter(lambda: process.leave(LeaveMode.DEFAULT, final=False))
        consumer.subscribed = False
        if self._rng.random() < 0.7:
            self._context.kernel.after(self._rng.randint(0, 10_000), self._resubscriber(consumer))

    def _resubscriber(self, consumer: Consumer) -> Callable[[], None]:
        def resubscribe() -> None:
            process = consumer.process
            if process is not None and not process.leaving:
                consumer.subscribed = True
                topics, pattern = self._subscription()
                process.enter(lambda: process.subscribe(topics, pattern))

        return resubscribe

    def _end_process(self, consumer: Consumer) -> None:
        process = consumer.process
        if process is None:
            return
        if self._rng.random() < self._context.options.process_crash:
            process.die("killed")
        else:
            mode = self._rng.choice(list(LeaveMode))
            process.enter(lambda: process.leave(mode, final=True))

    def _restart_process(self) -> None:
        """It ends, one way or the other, and its consumer comes back."""
        consumer = self._somebody()
        if consumer is not None:
            self._end_process(consumer)

    def _remove(self) -> None:
        """It ends, and its consumer comes back late or never."""
        consumer = self._somebody()
        if consumer is None:
            return
        consumer.wanted = False
        self._end_process(consumer)
        if self._rng.random() < 0.4:
            self._context.kernel.after(self._rng.randint(0, AWAY_MS_MAX), self._returner(consumer))

    def _returner(self, consumer: Consumer) -> Callable[[], None]:
        def come_back() -> None:
            if not self._schedule.over:
                consumer.wanted = True
                self._processes.start(consumer)

        return come_back

    def _pause(self) -> None:
        consumer = self._somebody()
        if consumer is None or consumer.process is None:
            return
        process = consumer.process
        process.fall_asleep()
        duration_ms = int(PAUSE_MS_MAX * self._rng.random() ** 2)
        self._context.kernel.after(duration_ms, process.wake)

    def _replace_static(self) -> None:
        """A static member hangs, and a new process is given its instance id (as when a container
        is declared dead and is not)."""
        consumer = self._somebody()
        if consumer is None or consumer.process is None:
            return
        plan, process = consumer.plan, consumer.process
        if plan.instance_id is None:
            return
        process.fall_asleep()
        self._context.kernel.after(self._rng.randint(0, PAUSE_MS_MAX), process.wake)
        consumer.wanted = False
        self._processes.add(plan.group_id, plan.topics, plan.pattern, plan.instance_id)

    def _create_topic(self) -> None:
        taken = {topic.name for topic in self._operator.topics}
        free = [f"t{n}" for n in range(TOPICS_MAX) if f"t{n}" not in taken]
        if free:
            self._operator.create_topic(self._rng.choice(free))

    def _grow_topic(self) -> None:
        topics = self._operator.topics
        if topics:
            self._operator.grow_topic(self._rng.choice(topics))

    def _delete_topic(self) -> None:
        topics = self._operator.topics
        if len(topics) > 1:
            self._operator.delete_topic(self._rng.choice(topics))

    def _recreate_topic(self) -> None:
        topics = self._operator.topics
        if topics:
            self._operator.recreate_topic(self._rng.choice(topics))

    def _configure_group(self) -> None:
        self._operator.configure_group(self._group())

    def _delete_group(self) -> None:
        self._clean_up(self._group(), CLEAN_UPS_MAX)

    def _clean_up(self, group_id: GroupId, times: int) -> None:
        """Ask again for a while: it is refused while the group has members."""
        if not self._schedule.over and times and not self._operator.delete_group(group_id):
            self._context.kernel.after(1_000, lambda: self._clean_up(group_id, times - 1))
