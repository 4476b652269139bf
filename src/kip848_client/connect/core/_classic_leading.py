"""The leader's work in a classic group: computing a round for all workers.

Its memory of one round is useful for the next only while it leads. It may have to wait for the
configuration, because the leader must know as much of it as any member.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from kip848_client.connect.core._classic_messages import Joined
from kip848_client.connect.core._classic_model import ClassicWorkerSettings
from kip848_client.connect.core._model import Configuration
from kip848_client.core.connect import Configuration as KnownConfiguration
from kip848_client.core.connect import (
    ConnectProtocol,
    Leader,
    Led,
    RoundMemory,
    WorkerMetadata,
    lead,
)
from kip848_client.errors import WireError

__all__ = ["Leading"]


@dataclass(frozen=True, slots=True)
class _Held:
    """A round that waits for the configuration."""

    joined: Joined
    until_ms: int
    wanted: int


class Leading:
    """The leader's part of a worker."""

    def __init__(self, settings: ClassicWorkerSettings) -> None:
        self._settings = settings
        self._memory = RoundMemory()
        self._held: _Held | None = None
        self._told_of: frozenset[str] = frozenset()
        """Members of the newest round whose metadata cannot be read."""

    @property
    def gives_up_ms(self) -> int | None:
        """How long a round waits for the configuration; ``None`` if none does."""
        return None if self._held is None else self._held.until_ms

    @property
    def wanted_offset(self) -> int:
        """The config offset that a round waits for."""
        return -1 if self._held is None else self._held.wanted

    def follow(self) -> None:
        """Another worker leads, so this worker's memory is useless."""
        self._memory = RoundMemory()
        self._held = None

    def drop(self) -> None:
        """The round has ended without a result."""
        self._held = None

    def compute(
        self, now_ms: int, joined: Joined, configuration: Configuration, completed: int
    ) -> Led | None:
        """Compute the round that JoinGroup began. ``None``: a member knows more of the
        configuration (``wanted_offset``), and the round waits for it."""
        return self._compute(now_ms, joined, configuration, completed, is_fresh=False)

    def go_on(
        self, now_ms: int, configuration: Configuration, completed: int
    ) -> tuple[Joined, Led] | None:
        """The configuration has been read: compute the waiting round, if any and if this is
        enough."""
        held = self._held
        if held is None or configuration.offset < held.wanted:
            return None
        self._held = None
        led = self._compute(now_ms, held.joined, configuration, completed, is_fresh=True)
        return None if led is None else (held.joined, led)

    def complaints(self, led: Led) -> list[WireError]:
        """Errors about members that take no part in the round, reported once per member."""
        new = led.unreadable.keys() - self._told_of
        self._told_of = frozenset(led.unreadable)
        return [
            WireError(
                f"member {each} of the group has joined with metadata that cannot be read: "
                f"{led.unreadable[each]}. It is given nothing, and what it may run is given to "
                "others, after scheduled.rebalance.max.delay.ms where this leader knew that it had "
                "it: stop that worker, or correct what it sends"
            )
            for each in sorted(new)
        ]

    def _compute(
        self,
        now_ms: int,
        joined: Joined,
        configuration: Configuration,
        completed: int,
        *,
        is_fresh: bool,
    ) -> Led | None:
        settings = self._settings
        known = KnownConfiguration(
            configuration.offset,
            {name: tasks.count for name, tasks in configuration.connectors.items()},
            is_fresh,
        )
        leader = Leader(
            joined.member_id,
            settings.url,
            ConnectProtocol.of_group_protocol(joined.protocol),
            settings.scheduled_rebalance_max_delay_ms,
            settings.java_order,
        )
        led = lead(
            joined.members,
            known,
            self._memory,
            leader,
            now_ms=now_ms,
            completed=completed,
            generation=joined.generation,
        )
        if led is None:
            until_ms = now_ms + settings.worker_sync_timeout_ms
            self._held = _Held(joined, until_ms, _newest(joined))
            return None
        self._memory = led.memory
        return led


def _newest(joined: Joined) -> int:
    found = -1
    for raw in joined.members.values():
        with suppress(WireError):  # its metadata has no offset
            found = max(found, WorkerMetadata.decode(raw).config_offset)
    return found
