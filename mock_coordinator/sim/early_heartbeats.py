"""A member heartbeats more often than the interval for a reason only, and then not for long.

The interval is the rule. It lets through one heartbeat each; what goes out beyond that is *early*
and needs one of these:

- *news*: the coordinator named another assignment. That is worth a bounded number of extra
  heartbeats, or none where they are switched off.
- *a cause*: a heartbeat that failed, a join, an acknowledgement, a changed subscription, a refused
  commit. Each is worth one, and a few that come together are sent as one.

A group in which nothing changes has neither, so no heartbeat in it is early.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kip848_client.core.member import EXTRA_HEARTBEATS_MAX
from mock_coordinator.sim.invariants import MemberView, Violation
from mock_coordinator.sim.probes import Probes

__all__ = ["EarlyHeartbeats"]

_CAUSES_MAX: Final = 5
_DEFAULT_INTERVAL_MS: Final = 5_000


@dataclass(slots=True)
class _Account:
    """What a member may still spend."""

    interval_ms: int = _DEFAULT_INTERVAL_MS
    sent_ms: int = 0
    saved_ms: int = 0
    """Of an interval, since the last heartbeat that it paid for."""
    causes: int = 0
    extra: int = 0


class EarlyHeartbeats:
    """Keeps an account for each member. ``extra``: whether there are extra heartbeats at all."""

    def __init__(self, probes: Probes, *, extra: bool) -> None:
        self._probes = probes
        # and the one of the interval that was running, which ends at any time between them
        self._extra = EXTRA_HEARTBEATS_MAX + 1 if extra else 0
        self._accounts: dict[MemberView, _Account] = {}
        self.count = 0
        """How many heartbeats were early so far."""

    def told(self, member: MemberView, interval_ms: int, *, news: bool) -> None:
        """The coordinator accepted a heartbeat, and named the interval."""
        account = self._account(member)
        account.interval_ms = interval_ms
        if news:
            account.extra = self._extra

    def cause(self, member: MemberView) -> None:
        """Something happened that a heartbeat may answer at once."""
        account = self._account(member)
        account.causes = min(account.causes + 1, _CAUSES_MAX)

    def sent(self, now_ms: int, member: MemberView) -> None:
        """A member sent a heartbeat. Raises ``Violation`` if it had no reason to."""
        account = self._account(member)
        saved_ms = account.saved_ms + now_ms - account.sent_ms
        account.saved_ms, account.sent_ms = min(saved_ms, account.interval_ms), now_ms
        if account.saved_ms >= account.interval_ms:
            account.saved_ms = 0
            return
        self.count += 1
        if account.causes:
            account.causes -= 1
        elif account.extra:
            account.extra -= 1
            self._probes.reached("extra heartbeat")
        else:
            raise Violation(
                EarlyHeartbeats,
                f"{member.name} ({member.state.value}) sends a heartbeat after {saved_ms} ms of "
                f"{account.interval_ms}, and nothing has changed",
            )

    def _account(self, member: MemberView) -> _Account:
        return self._accounts.setdefault(member, _Account())
