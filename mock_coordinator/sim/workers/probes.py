"""Rare paths of workers that the fixed seeds must reach, by name; see ``sim.probes``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

__all__ = ["WORKER_PROBES"]

WORKER_PROBES: Final[Mapping[str, str]] = {
    "duplicate request": "the network delivered a request twice",
    "a broker stopped": "with what was on its way to it",
    "a coordinator moved": "to another node",
    "one more": "a worker came",
    "one less": "a worker went for good",
    "killed": "a process died without a word",
    "bounced": "a worker was stopped in good order, and came back",
    "sleep": "a process stood still",
    "overslept": "for so long that others may run what it runs",
    "fence": "a worker was refused with FENCED_MEMBER_EPOCH or UNKNOWN_MEMBER_ID",
    "lost items": "a worker had to stop what others may run",
    "revoked items": "a worker was asked to stop some of what it ran",
    "a static worker waits": "an instance id was still held when a worker wanted to join with it",
    "the assignor failed": "and the coordinator learned that",
    "a target refused": "an installed target was refused, for the group had moved on",
    "configuration awaited": "an assignment was made of more than the worker had read",
    "fenced with news unread": "a worker was fenced while items waited for the configuration",
    "configured anew": "tasks got another generation, or a connector came or went",
    "deferred items": "items waited for the worker that had run them",
    "got back": "a bounced worker has run again just what it had run before",
}
"""Every probe of these worlds, and what having reached it means."""
