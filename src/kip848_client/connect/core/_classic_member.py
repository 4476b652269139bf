"""What the parts of ``ClassicWorkerCore`` share: who the worker is in its group, in which state,
and what the present step commands."""

from __future__ import annotations

from kip848_client.connect.core import _classic_states as st
from kip848_client.connect.core._classic_model import ClassicWorkerSettings
from kip848_client.connect.core._classic_states import ClassicState
from kip848_client.connect.core._core import Output
from kip848_client.core.backoff import Jitter
from kip848_client.core.member import Announce

__all__ = ["ClassicMember"]


class ClassicMember:
    """A worker's place in its group."""

    def __init__(self, settings: ClassicWorkerSettings, jitter: Jitter) -> None:
        self.now_ms = 0
        self.out: list[Output] = []
        """The commands of this step."""
        self.state = ClassicState.UNSUBSCRIBED
        self.member_id = ""
        """The id that the coordinator gave; empty before."""
        self.generation = -1
        """Of the newest answer to JoinGroup; -1 when out of the group."""
        self.attempts = 0
        """The number of the newest request."""
        self.not_before_ms = 0
        """No JoinGroup and no LeaveGroup before."""
        self._backoff = settings.backoff(jitter)

    @property
    def is_in_group(self) -> bool:
        """Whether it is in the group, or wants to be."""
        return self.state in st.IN_GROUP

    @property
    def is_pausing(self) -> bool:
        """Whether JoinGroup and LeaveGroup have to wait."""
        return self.now_ms < self.not_before_ms

    def number(self) -> int:
        """The number of the next request."""
        self.attempts += 1
        return self.attempts

    def move(self, trigger: type[st.Trigger], why: str) -> None:
        """Change the state. Raises ``LocalProtocolError`` for an illegal move."""
        old = self.state
        self.state = st.advance(old, trigger)
        if old.seen_as is not self.state.seen_as:
            self.emit(Announce(old.seen_as, self.state.seen_as, why))

    def emit(self, command: Output) -> None:
        """Add a command to this step."""
        self.out.append(command)

    def pause(self) -> None:
        """A round or a leave failed: the next request waits, longer after each failure in a row."""
        self.not_before_ms = self.now_ms + self._backoff.next_ms()

    def end_pauses(self) -> None:
        """A round succeeded."""
        self._backoff.reset()
