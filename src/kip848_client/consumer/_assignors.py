"""The user's client-side assignors: reads their metadata, runs them, and passes targets to them.

No assignor may block or end the consumer. Exceptions are logged.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from kip848_client.core.client_assignors import (
    AssignorFailed,
    AssignorMetadata,
    ClientAssignor,
)
from kip848_client.core.group import AbandonComputation, AssignmentComputed, ComputeAssignment
from kip848_client.core.member import OfferedAssignor
from kip848_client.runtime._assignor_runs import AssignorRun, checked_metadata

__all__ = ["LocalAssignors"]

_log = logging.getLogger("kip848_client")

_NO_FIELDS: Final[Mapping[str, object]] = MappingProxyType({})


class LocalAssignors:
    """``assignors`` are in order of preference; their names and versions were checked. ``fields``
    go with each line of the log."""

    def __init__(
        self, assignors: Sequence[ClientAssignor], fields: Mapping[str, object] = _NO_FIELDS
    ) -> None:
        self._fields = fields
        self._assignors: Final = {each.name: each for each in assignors}
        self._ranges: Final = {
            name: (each.minimum_version, each.maximum_version)
            for name, each in self._assignors.items()
        }
        self._offered: dict[str, OfferedAssignor] = {}
        self._silent: set[str] = set()
        """Assignors whose last ``metadata()`` call failed."""
        self._run = AssignorRun()

    def __bool__(self) -> bool:
        return bool(self._assignors)

    def offer(self) -> tuple[OfferedAssignor, ...]:
        """Return the current metadata of each, or the previous one if the call fails. Never
        raises."""
        return tuple(self._offer_of(name) for name in self._assignors)

    def _offer_of(self, name: str) -> OfferedAssignor:
        low, high = self._ranges[name]
        try:
            said = checked_metadata(self._assignors[name].metadata(), low, high)
        except (Exception, asyncio.CancelledError) as err:  # noqa: BLE001 - whatever a user raises
            if name not in self._silent:  # logged once, not with every heartbeat
                self._silent.add(name)
                text, extra = "metadata() of assignor %s failed: %r", self._extra(name)
                _log.error(text, name, err, exc_info=err, extra=extra)
            said = AssignorMetadata(version=high)
            return self._offered.setdefault(name, _offered(name, low, high, said))
        self._silent.discard(name)
        offered = self._offered[name] = _offered(name, low, high, said)
        return offered

    def _extra(self, name: str) -> dict[str, object]:
        return {**self._fields, "assignor": name}

    # -- computing ---------------------------------------------------------------------------

    async def compute(self, command: ComputeAssignment) -> AssignmentComputed:
        """Run the assignor that was chosen."""
        number, group = command.number, command.group
        assignor = self._assignors.get(group.assignor)
        if assignor is None:
            what = f"the coordinator chose {group.assignor!r}, which is none of ours"
            return AssignmentComputed(number, failure=AssignorFailed(what))
        try:
            returned = await self._run.of(
                number,
                group.assignor,
                assignor.assign,
                (group.members, group.topics),
                command.timeout_ms,
                self._extra(group.assignor),
            )
        except AssignorFailed as failure:
            return AssignmentComputed(number, failure=failure)
        return AssignmentComputed(number, returned)

    def abandon(self, command: AbandonComputation) -> None:
        """Abandon a computation. A thread runs on, to no effect."""
        self._run.abandon(command.number)

    def named(self) -> Iterator[tuple[str, ClientAssignor]]:
        """All of them, with their names, in order."""
        yield from self._assignors.items()


def _offered(name: str, low: int, high: int, said: AssignorMetadata) -> OfferedAssignor:
    return OfferedAssignor(name, low, high, said.reason, said.version, bytes(said.data))
