"""A classic group: its stored state, and its state in memory.

Theory of operation
===================

A classic group is stored only when a generation is complete (and when the group is created): one
``GroupMetadata`` record has all of it. Everything between two generations is in memory and lost in
a crash: members that have joined so far, requests that wait, missing assignments. So a
``ClassicGroup`` has two halves. ``stored`` is what the last record has; only records change it.
``live`` is the group at work, in a separate value (``LiveGroup``), and the only place for state
that no record has.

Applying a record sets both: the live half is then that of a broker that has just loaded the group.
A running coordinator replaces it by its own live half (in ``GroupCoordinator``, after a decision's
records are applied). Timers are kept with all others in ``Timers``.
"""

from __future__ import annotations

from typing import Final

from mock_coordinator.core.groups.records.state_records import ClassicGeneration
from mock_coordinator.core.groups.state.classic_live import LiveGroup
from mock_coordinator.core.groups.state.consumer_group import GroupState, GroupType

__all__ = ["ClassicGroup"]


class ClassicGroup:
    """A group of type classic. Without a protocol type it is a *simple* group: one that exists only
    because an offset was committed without a member."""

    __slots__ = ("group_id", "live", "stored")

    type: Final = GroupType.CLASSIC

    def __init__(self, group_id: str, stored: ClassicGeneration | None = None) -> None:
        self.group_id = group_id
        self.stored = stored
        self.live = LiveGroup() if stored is None else LiveGroup.loaded(stored)

    @property
    def state(self) -> GroupState:
        """Empty, PreparingRebalance, CompletingRebalance or Stable."""
        return self.live.state

    @property
    def protocol_type(self) -> str:
        """What the members speak: ``"consumer"``, ``"connect"``, ..; empty for a simple group."""
        return self.live.protocol_type or ""

    @property
    def is_empty(self) -> bool:
        """No generation with members, and none in the making."""
        return self.live.state is GroupState.EMPTY

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether some member wants the topic. As long as a group of consumers has not said what it
        wants, it might want any."""
        topics = self.live.subscribed_topics
        return self.live.uses_consumer_protocol if topics is None else topic in topics
