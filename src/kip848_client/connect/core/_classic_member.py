"""The state shared by the parts of ``ClassicWorkerCore``: the worker's identity in its group, its
state, and the commands of the current step."""

from __future__ import annotations

from kip848_client.connect.core import _classic_states as st
from kip848_client.connect.core._classic_model import ClassicWorkerSettings
from kip848_client.connect.core._classic_states import ClassicState
from kip848_client.connect.core._core import Output
from kip848_client.core.backoff import Jitter
from kip848_client.core.member import Announce

__all__ = ["ClassicMember"]


class ClassicMember:
    """A worker's identity and state in its group."""

    def __init__(self, settings: ClassicWorkerSettings, jitter: Jitter) -> None:
        self.now_ms = 0
        self.out: list[Output] = []
        """The commands of this step."""
        self.state = ClassicState.UNSUBSCRIBED
        self.member_id = ""
        """The id that the coordinator assigned; empty before."""
        self.generation = -1
        """The generation of the newest answer to JoinGroup; -1 if not in the group."""
        self.attempts = 0
        """The number of the newest request."""
        self.not_before_ms = 0
        """The earliest time for the next JoinGroup or LeaveGroup."""
        self._backoff = settings.backoff(jitter)

    @property
    def is_in_group(self) -> bool:
        """Whether it is in the group, or is joining."""
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
        """Change the state. Raises ``LocalProtocolError`` for an illegal transition."""
        old = self.state
        self.state = st.advance(old, trigger)
        if old.seen_as is not self.state.seen_as:
            self.emit(Announce(old.seen_as, self.state.seen_as, why))

    def emit(self, command: Output) -> None:
        """Add a command to this step."""
        self.out.append(command)

    def pause(self) -> None:
        """A round or a leave failed: the next request waits, for longer after each failure in a
        row."""
        self.not_before_ms = self.now_ms + self._backoff.next_ms()

    def end_pauses(self) -> None:
        """A round succeeded: the next pause is short again."""
        self._backoff.reset()
