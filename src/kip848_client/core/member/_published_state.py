"""State and epoch of the member, as published to others."""

from __future__ import annotations

from collections.abc import Callable

from kip848_client.core.member import _states as st
from kip848_client.core.member._commands import Announce, Command, EpochChanged
from kip848_client.core.member._states import MemberState
from kip848_client.core.types import JOIN_EPOCH

__all__ = ["PublishedState"]


class PublishedState:
    """State and epoch. Every change of either is a command at once."""

    def __init__(self, emit: Callable[[Command], None]) -> None:
        self._emit = emit
        self.state = MemberState.UNSUBSCRIBED
        self.epoch = JOIN_EPOCH
        """The epoch of the next heartbeat: 0 to join, negative to leave, else the coordinator's."""
        self.told_epoch: int | None = None
        """The epoch of the last ``EpochChanged``."""

    @property
    def commit_epoch(self) -> int | None:
        """The epoch for commits and offset fetches, ``None`` when not in the group."""
        return self.epoch if self.epoch > 0 and self.state in st.IN_GROUP else None

    def move(self, trigger: type[st.Trigger], why: str) -> None:
        """Take a legal move of the table; ``LocalProtocolError`` for any other."""
        old = self.state
        self.state = st.advance(old, trigger)
        if self.state is not old:
            self._emit(Announce(old, self.state, why))

    def adopt(self, epoch: int) -> None:
        """Adopt ``epoch``; committers are notified only if it changes for them."""
        self.epoch = epoch
        told = epoch if epoch > 0 else None
        if told != self.told_epoch:
            self.told_epoch = told
            self._emit(EpochChanged(told))
