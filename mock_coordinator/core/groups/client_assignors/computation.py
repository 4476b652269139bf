"""Differences between types of groups with client-side assignors: the input of a computation, and
the checks of its result. ``rounds`` is common to all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from mock_coordinator.core.groups.records.state_records import StateRecord
from mock_coordinator.core.groups.state.reconciled_group import ReconciledGroup
from mock_coordinator.core.topics.catalog import Catalog

__all__ = ["Computation", "FromChosenMember", "ResultOfChosenMember"]

G = TypeVar("G", bound=ReconciledGroup)
I = TypeVar("I")  # noqa: E741 - the input of a computation
P = TypeVar("P")
R = TypeVar("R", bound="ResultOfChosenMember")


class FromChosenMember(Protocol):
    """A request that only the member chosen to compute may send."""

    @property
    def group_id(self) -> str:
        """Its group."""
        ...

    @property
    def member_id(self) -> str:
        """The sender."""
        ...

    @property
    def member_epoch(self) -> int:
        """Its epoch."""
        ...


class _NamesMember(Protocol):
    @property
    def member_id(self) -> str: ...


class ResultOfChosenMember(FromChosenMember, Protocol):
    """The result of a computation."""

    @property
    def group_epoch(self) -> int:
        """The group epoch that it was prepared for."""
        ...

    @property
    def members(self) -> Sequence[_NamesMember]:
        """The new assignment of each member."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Computation(Generic[G, I, P, R]):
    """How the members of one type of group compute.

    ``given`` takes the group as it is, for an assignor; ``answer`` is the answer to the member, and
    ``installed`` the records of its result (group, what was given, result, time in ms). The latter
    raises ``Refused`` for a result that does not fit. ``fences_ahead``: a member that is ahead of
    what the coordinator knows is fenced; else it has to retry, as one that is behind.
    """

    kind: type[G]
    given: Callable[[Catalog, G, str], I]
    answer: Callable[[I], P]
    installed: Callable[[G, I, R, int], list[StateRecord]]
    fences_ahead: bool = False
