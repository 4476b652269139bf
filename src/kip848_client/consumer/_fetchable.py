"""Which partitions may be delivered: those that the group allows, unless all are held."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

from kip848_client.core.fetch import AllButHeld
from kip848_client.core.types import TopicId, TopicPartition

__all__ = ["Fetchable"]

Limits = tuple[frozenset[TopicPartition], frozenset[TopicPartition]]
_NONE: Final[frozenset[TopicPartition]] = frozenset()


class Fetchable:
    """Posts changes to the fetch core (``post``), and nothing twice."""

    def __init__(self, post: Callable[[AllButHeld], None]) -> None:
        self._post = post
        self._allowed: Limits = (_NONE, _NONE)
        """The group's assignment, and the deliverable part of it."""
        self._everything = False
        self._told: Limits | None = None

    def assignment_changed(self) -> None:
        """Post again: the core has forgotten the previous limits."""
        self._told = None

    def fetch_only(
        self, fetchable: Collection[TopicPartition], of: Mapping[TopicPartition, TopicId]
    ) -> None:
        """Limit delivery to ``fetchable``, of the group's assignment (``of``)."""
        self._allowed = frozenset(of), frozenset(fetchable)
        self._tell()

    def hold(self, *, everything: bool) -> None:
        """Deliver nothing of the group's assignment, or resume. Meanwhile the application keeps the
        assignment, and may pause, seek and commit."""
        if everything != self._everything:
            self._everything = everything
            self._tell()

    def _tell(self) -> None:
        assigned, fetchable = self._allowed
        limits = assigned, _NONE if self._everything else fetchable
        if limits != self._told:
            self._told = limits
            self._post(AllButHeld(*limits))
