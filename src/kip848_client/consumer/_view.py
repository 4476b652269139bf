"""The user's view of the membership."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kip848_client.config import ConsumerConfig
from kip848_client.consumer._engine import Engine
from kip848_client.consumer._group_driver import GroupDriver
from kip848_client.core.member import MemberState
from kip848_client.core.types import TopicPartition
from kip848_client.errors import Kip848Error
from kip848_client.observe.core.watching import ConsumerHealth, Lifecycle

__all__ = ["MemberView", "health_of", "health_without", "view_of"]


@dataclass(frozen=True, slots=True)
class MemberView:
    """A membership at one moment.

    Attributes:
        member_id: Random, made by this client for its whole life (KIP-1082).
        assigned: The partitions that the member has by its own account.
        coordinator_known: Whether the group's coordinator was found and is not in doubt.
        heartbeat_interval_ms: What the coordinator asks for, in milliseconds.
        heartbeats_sent: How many were sent since ``start``.
        heartbeats_answered: How many of them were answered.
        consecutive_fences: How often the member was fenced since its last accepted heartbeat.
    """

    member_id: str
    member_epoch: int
    """0 while joining, the coordinator's number in the group, negative once it left."""
    state: MemberState
    """``FATAL`` if any error ended the membership: no heartbeat is sent any more."""
    assigned: tuple[TopicPartition, ...]
    coordinator_known: bool
    coordinator_silent_ms: int
    """How long heartbeats have not been answered although one is due; 0 if all is well."""
    heartbeat_interval_ms: int
    heartbeats_sent: int
    heartbeats_answered: int
    last_heartbeat_age_ms: int | None
    """Since the last answered heartbeat; ``None`` before the first."""
    consecutive_fences: int
    fatal_error: Kip848Error | None
    """The error that ended the membership, raised by every call; ``None`` while it lives."""


def view_of(group_driver: GroupDriver, now_ms: int, fatal: Kip848Error | None) -> MemberView:
    """Build the view of the membership that ``group_driver`` drives, or drove until ``fatal``
    happened."""
    seen = group_driver.member.snapshot(now_ms)
    last = group_driver.last_heartbeat_ms
    return MemberView(
        member_id=seen.member_id,
        member_epoch=seen.member_epoch,
        state=seen.state if fatal is None else MemberState.FATAL,
        assigned=tuple(each.tp for each in seen.assigned),
        coordinator_known=seen.coordinator_known,
        coordinator_silent_ms=seen.coordinator_silent_ms,
        heartbeat_interval_ms=seen.heartbeat_interval_ms,
        heartbeats_sent=group_driver.heartbeats_sent,
        heartbeats_answered=group_driver.heartbeats_answered,
        last_heartbeat_age_ms=None if last is None else now_ms - last,
        consecutive_fences=seen.consecutive_fences,
        fatal_error=fatal,
    )


def health_without(
    config: ConsumerConfig, phase: Lifecycle | None, fatal: Kip848Error | None
) -> ConsumerHealth:
    """Build the health of a consumer that does not run: not started, or closed."""
    return ConsumerHealth(
        state=phase,
        member_epoch=0,
        assigned=0,
        coordinator=None,
        heartbeat_age_ms=None,
        heartbeat_interval_ms=None,
        unreachable_ms=0,
        poll_age_ms=None,
        max_poll_interval_ms=config.poll_interval_ms,
        event_loop_late_ms=0,
        consecutive_fences=0,
        fatal_error=fatal,
    )


def health_of(engine: Engine[Any, Any]) -> ConsumerHealth:
    """Build the health of a running consumer."""
    group_driver, now_ms = engine.group_driver, engine.clock.now_ms()
    fatal = engine.errors.fatal
    if engine.runtime.task is None and fatal is None:
        return health_without(engine.config, Lifecycle.STARTING, None)
    if group_driver is None:
        return ConsumerHealth(
            state=None,
            member_epoch=0,
            assigned=len(engine.core.assigned),
            coordinator=engine.transport.coordinator_address,
            heartbeat_age_ms=None,
            heartbeat_interval_ms=None,
            unreachable_ms=0,
            poll_age_ms=None,
            max_poll_interval_ms=engine.config.poll_interval_ms,
            event_loop_late_ms=0,
            consecutive_fences=0,
            fatal_error=fatal,
            waits=(*engine.topics.problems(), *engine.core.problems(now_ms)),
        )
    seen = group_driver.member.snapshot(now_ms)
    last_ms = group_driver.last_heartbeat_ms
    return ConsumerHealth(
        state=seen.state if fatal is None else MemberState.FATAL,
        member_epoch=max(0, seen.member_epoch),
        assigned=len(engine.core.assigned),
        coordinator=engine.transport.coordinator_address,
        heartbeat_age_ms=None if last_ms is None else now_ms - last_ms,
        heartbeat_interval_ms=seen.heartbeat_interval_ms,
        unreachable_ms=seen.coordinator_silent_ms,
        poll_age_ms=seen.poll_age_ms,
        max_poll_interval_ms=engine.config.poll_interval_ms,
        event_loop_late_ms=engine.observers.event_loop_late_ms,
        consecutive_fences=seen.consecutive_fences,
        fatal_error=fatal,
        waits=(
            *group_driver.problems(),
            *engine.topics.problems(),
            *engine.core.problems(now_ms),
        ),
    )
