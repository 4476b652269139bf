"""Times and limits of a member that are not settings of the client.

The backoff, the poll interval and the timeouts of requests are settings: see ``MemberSettings``.
The pauses between extra heartbeats are in ``_extra_heartbeats``.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "DEFAULT_INTERVAL_MS",
    "LEAVE_PATIENCE_MS",
    "REJOIN_BACKOFF_MAX_MS",
    "REPORT_EVERY_MS",
    "UNREACHABLE_AFTER_MS",
    "UNRELEASED_INSTANCE_LIMIT_MS",
    "URGENT_PER_WINDOW",
    "URGENT_WINDOW_MS",
]

UNREACHABLE_AFTER_MS: Final = 30_000
"""A coordinator that has not answered for this long is reported, repeatedly at this interval, and
counts as unreachable in the health."""

REPORT_EVERY_MS: Final = 5_000
"""The same error is raised at most this often (or once a heartbeat interval, if that is longer)."""

REJOIN_BACKOFF_MAX_MS: Final = 5_000
"""Longest pause between joins when the coordinator keeps fencing the member."""

UNRELEASED_INSTANCE_LIMIT_MS: Final = 60_000
"""How long a *re*join is retried on UNRELEASED_INSTANCE_ID. The largest session timeout that a
broker grants by default (``group.consumer.max.session.timeout.ms``) is 60 s."""

LEAVE_PATIENCE_MS: Final = 5_000
"""How long a leave looks for an unknown coordinator before it gives up."""

DEFAULT_INTERVAL_MS: Final = 5_000
"""The heartbeat interval until the broker has named one: the default of
``group.consumer.heartbeat.interval.ms``."""

URGENT_WINDOW_MS: Final = 1_000
URGENT_PER_WINDOW: Final = 10
"""At most this many urgent heartbeats (joining, acknowledging, a changed subscription) are sent per
window of ``URGENT_WINDOW_MS``."""
