"""When to warn of a blocked event loop, and its consequences.

Heartbeats are sent by timers of the application's event loop. A blocked loop (by a computation, or
a call that waits without ``await``) sends none. The coordinator never sends its session timeout to
members, so the warning names Kafka's default and where it is configured.
"""

from __future__ import annotations

from typing import Final

__all__ = ["SESSION_TIMEOUT_MS", "is_blocked", "what_happens_next"]

SESSION_TIMEOUT_MS: Final = 45_000
"""The default of ``group.consumer.session.timeout.ms``, and the least that brokers allow."""

_WAY_OUT: Final = "run what blocks in a thread (asyncio.to_thread) or in a process"
_WHERE: Final = (
    "45 s unless consumer.session.timeout.ms of the group or group.consumer.session.timeout.ms "
    "says more"
)


def is_blocked(late_ms: int, heartbeat_interval_ms: int) -> bool:
    """Whether a timer this late means that a heartbeat was left out."""
    return late_ms >= heartbeat_interval_ms


def what_happens_next(late_ms: int, silent_ms: int | None) -> str:
    """Return a sentence for the log. ``silent_ms``: time since the coordinator last answered a
    heartbeat."""
    began = f"the event loop did not run for at least {late_ms / 1000:.1f} s"
    if silent_ms is None:
        return f"{began}: the member could not join its group; {_WAY_OUT}"
    silent = f"{silent_ms / 1000:.1f} s"
    if silent_ms < SESSION_TIMEOUT_MS:
        return (
            f"{began}, and the coordinator has not heard of this member for {silent}. After the "
            f"session timeout ({_WHERE}) it gives the partitions to other members, who process "
            f"again what is not committed; {_WAY_OUT}"
        )
    return (
        f"{began}, and the coordinator has not heard of this member for {silent}, which is longer "
        f"than the session timeout ({_WHERE}): the next heartbeat will be refused with "
        "UNKNOWN_MEMBER_ID, the partitions are lost (on_partitions_lost), what is not committed is "
        f"processed again by their new owners, and the member joins anew; {_WAY_OUT}"
    )
