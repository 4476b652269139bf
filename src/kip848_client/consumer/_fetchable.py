"""Of which partitions records may be handed out: what the group allows, unless all are held."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

from kip848_client.core.fetch import AllButHeld
from kip848_client.core.types import TopicId, TopicPartition

__all__ = ["Fetchable"]

Limits = tuple[frozenset[TopicPartition], frozenset[TopicPartition]]
_NONE: Final[frozenset[TopicPartition]] = frozenset()


class Fetchable:
    """Tells the core of fetching (``post``) what has changed, and nothing twice."""

    def __init__(self, post: Callable[[AllButHeld], None]) -> None:
        self._post = post
        self._allowed: Limits = (_NONE, _NONE)
        """What the group has assigned, and what of it may be handed out."""
        self._everything = False
        self._told: Limits | None = None

    def assignment_changed(self) -> None:
        """The core has forgotten what it was told."""
        self._told = None

    def fetch_only(
        self, fetchable: Collection[TopicPartition], of: Mapping[TopicPartition, TopicId]
    ) -> None:
        """Of what the group assigned (``of``), nothing may be handed out that is not
        ``fetchable``."""
        self._allowed = frozenset(of), frozenset(fetchable)
        self._tell()

    def hold(self, *, everything: bool) -> None:
        """Hand out nothing of what the group has assigned, or go on where it was. The application
        has it all the while, and may pause, seek and commit."""
        if everything != self._everything:
            self._everything = everything
            self._tell()

    def _tell(self) -> None:
        assigned, fetchable = self._allowed
        limits = assigned, _NONE if self._everything else fetchable
        if limits != self._told:
            self._told = limits
            self._post(AllButHeld(*limits))
