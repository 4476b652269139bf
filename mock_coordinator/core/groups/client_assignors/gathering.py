"""How long a group waits for more members before it has its first target computed.

Members that start together join within seconds. A target for the first of them would be followed by
one for each of the others, which revokes what the first ones got. So a group without any target
waits for ``group.initial.rebalance.delay.ms``, again after each member that joins, and at most for
that member's rebalance timeout, as a classic group does before its first generation (KIP-134). A
group waits once, and again after all members have left.

No record has this state: after a fail-over the wait starts over.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from mock_coordinator.core.groups.state.environment import Environment
from mock_coordinator.core.groups.state.reconciled_group import ReconciledGroup
from mock_coordinator.core.groups.state.timers import Timer, TimerKind

__all__ = ["Gathering"]


@dataclass(slots=True)
class _Wait:
    """``came``: the members that it was prolonged for."""

    since_ms: int
    until_ms: int
    came: set[str] = field(default_factory=set[str])


class Gathering:
    """The groups of a coordinator that wait for company."""

    def __init__(self, env: Environment) -> None:
        self._env: Final = env
        self._waits: Final[dict[str, _Wait]] = {}
        self._done: Final[set[str]] = set()
        """Groups that have waited, and have members still."""

    def holds(self, now_ms: int, group: ReconciledGroup) -> bool:
        """Whether the group, which needs a target, has to wait for others to come. Arms the timer
        of its end."""
        group_id = group.group_id
        delay_ms = self._env.config.integer("group.initial.rebalance.delay.ms")
        if not group.gathers or group.targets or group_id in self._done or delay_ms <= 0:
            return False
        wait = self._waits.setdefault(group_id, _Wait(now_ms, now_ms))
        if not wait.came.issuperset(group.members):
            wait.came.update(group.members)
            wait.until_ms = min(now_ms + delay_ms, wait.since_ms + _bound_ms(group, delay_ms))
            self._env.timers.arm(Timer(TimerKind.COMPANY, group_id), wait.until_ms)
        if now_ms < wait.until_ms:
            return True
        self.end(group_id)
        return False

    def end(self, group_id: str) -> None:
        """The group has waited long enough."""
        self._stop(group_id)
        self._done.add(group_id)

    def forget(self, group_id: str) -> None:
        """All members have left: the next ones wait again."""
        self._stop(group_id)
        self._done.discard(group_id)

    def _stop(self, group_id: str) -> None:
        if self._waits.pop(group_id, None) is not None:
            self._env.timers.cancel(Timer(TimerKind.COMPANY, group_id))


def _bound_ms(group: ReconciledGroup, delay_ms: int) -> int:
    longest = max(each.subscription.rebalance_timeout_ms for each in group.members.values())
    return max(longest, delay_ms)
