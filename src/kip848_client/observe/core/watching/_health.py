"""The health of a group member. Pure: facts in, a judgement out."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from enum import Enum
from typing import ClassVar, Final

from kip848_client.core.member import UNREACHABLE_AFTER_MS, MemberState, no_answer, not_polled
from kip848_client.errors import Kip848Error

__all__ = ["ConsumerHealth", "Lifecycle", "MemberHealth", "WorkerHealth"]

_IN_GROUP: Final = frozenset(
    {MemberState.STABLE, MemberState.RECONCILING, MemberState.ACKNOWLEDGING}
)


class Lifecycle(Enum):
    """The state of a client without a membership: before its start or after its stop."""

    NOT_STARTED = "NOT_STARTED"
    """``start`` was not called."""
    STARTING = "STARTING"
    """``start`` connects."""
    CLOSED = "CLOSED"
    """``stop`` was called and has finished."""

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class MemberHealth:
    """A member of a group at one moment: facts, and what they mean.

    The properties ``live``, ``ready`` and ``problems`` judge the facts.
    """

    noun: ClassVar[str] = "client"

    state: MemberState | Lifecycle | None
    """The state of the member. ``None`` without a membership (manual or no assignment), a
    ``Lifecycle`` until the start has finished and after the stop. ``str`` gives its name."""
    member_epoch: int
    """0 out of the group; in a classic group the generation."""
    assigned: int
    """How many partitions, or items of a worker, are assigned."""
    coordinator: str | None
    """``host:port`` of the group's coordinator; ``None`` while it is not known."""
    heartbeat_age_ms: int | None
    """Since the last heartbeat that was answered; ``None`` before the first."""
    heartbeat_interval_ms: int | None
    """The heartbeat interval requested by the coordinator."""
    unreachable_ms: int
    """How long the coordinator has not answered (also a join or a look-up); 0 if all is well."""
    event_loop_late_ms: int
    """How late the event loop ran the newest timer that is due once a second: more than a few ms
    means that something blocks it."""
    consecutive_fences: int
    """How often the coordinator fenced the member since its last accepted heartbeat."""
    fatal_error: Kip848Error | None = field(default=None)
    """The error that ended the client, raised by every call."""
    waits: tuple[str, ...] = ()
    """The waits of more than a second, with reasons, as sentences."""

    def __repr__(self) -> str:
        judged = f"live={self.live}, ready={self.ready}, problems={self.problems}"
        facts = (f"{each.name}={_plain(getattr(self, each.name))}" for each in fields(self))
        return f"{type(self).__name__}({judged}, {', '.join(facts)})"

    @property
    def stalled(self) -> bool:
        """Whether the application has stopped doing its part; see ``ConsumerHealth``."""
        return False

    @property
    def unreachable(self) -> bool:
        """Whether the coordinator has not answered for ``UNREACHABLE_AFTER_MS``."""
        return self.unreachable_ms >= UNREACHABLE_AFTER_MS

    @property
    def live(self) -> bool:
        """For a liveness probe: false where a restart helps.

        That is where only a new client helps, or an application that continues. An unreachable
        coordinator leaves it true: a restart does not cure that.
        """
        return self.fatal_error is None

    @property
    def ready(self) -> bool:
        """For a readiness probe: live, in the group, and the coordinator answers.

        Without a group: live.
        """
        in_group = self.state is None or self.state in _IN_GROUP  # no Lifecycle is
        return self.live and in_group and not self.unreachable

    @property
    def problems(self) -> tuple[str, ...]:
        """The problems, as sentences; empty if all is well."""
        found: list[str] = []
        if self.fatal_error is not None:
            found.append(f"the {self.noun} has ended: {self.fatal_error}")
        if self.stalled:
            found.append(self._stall())
        if self.unreachable:
            found.append(no_answer(self.unreachable_ms))
        if self.consecutive_fences > 1:
            found.append(f"the coordinator has fenced it {self.consecutive_fences} times in a row")
        return (*found, *self.waits)

    def _stall(self) -> str:
        raise AssertionError("a member that cannot stall has no sentence for it")


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class WorkerHealth(MemberHealth):
    """A worker at one moment: see ``Worker.health``."""

    noun: ClassVar[str] = "worker"


@dataclass(frozen=True, slots=True, repr=False, kw_only=True)
class ConsumerHealth(MemberHealth):
    """A consumer at one moment: see ``Consumer.health``."""

    noun: ClassVar[str] = "consumer"

    poll_age_ms: int | None
    """Time since the application last asked for records, to about a second; 0 while it waits for
    some, ``None`` before the first time."""
    max_poll_interval_ms: int
    """After this time without a call for records the member leaves its group."""

    @property
    def stalled(self) -> bool:
        """Whether the application has stopped asking for records.

        It has not asked for half of ``max_poll_interval_ms``, or the member has left the group for
        that reason.
        """
        if self.state is MemberState.STALE:
            return True
        age_ms = self.poll_age_ms
        return age_ms is not None and 2 * age_ms >= self.max_poll_interval_ms

    @property
    def live(self) -> bool:
        """For a liveness probe: false where a restart helps.

        That is where only a new consumer helps, or an application that asks for records again. An
        unreachable coordinator leaves it true: a restart does not cure that.
        """
        overdue = self.poll_age_ms is not None and self.poll_age_ms >= self.max_poll_interval_ms
        stale = self.state is MemberState.STALE
        return self.fatal_error is None and not overdue and not stale

    def _stall(self) -> str:
        limit = f"max_poll_interval_ms is {self.max_poll_interval_ms}"
        if self.state is MemberState.STALE:
            return (
                "the member has left its group because the application did not ask for records "
                f"({limit}); it joins again with the next call"
            )
        return f"{not_polled(self.poll_age_ms or 0)} ({limit})"


def _plain(value: object) -> str:
    return str(value) if isinstance(value, Enum) else repr(value)
