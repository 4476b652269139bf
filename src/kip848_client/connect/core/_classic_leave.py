"""Leaving a classic group, at the user's request or to let another worker lead."""

from __future__ import annotations

from kip848_client.connect.core import _classic_messages as ms
from kip848_client.connect.core import _classic_states as st
from kip848_client.connect.core._classic_heartbeat import ClassicHeartbeat
from kip848_client.connect.core._classic_items import HeldItems
from kip848_client.connect.core._classic_member import ClassicMember
from kip848_client.connect.core._classic_model import ClassicWorkerSettings
from kip848_client.connect.core._classic_rounds import Rounds
from kip848_client.connect.core._classic_states import ClassicState
from kip848_client.connect.core._commands import ReadConfiguration
from kip848_client.connect.core._error_rules import Reaction, classic_error, reaction
from kip848_client.core.member import CoordinatorLink, LeaveCompleted, LeaveMode, LeaveRequested
from kip848_client.errors import Kip848Error, LocalProtocolError

__all__ = ["ClassicLeave"]


class ClassicLeave:
    """The leave in progress, if any."""

    def __init__(
        self,
        settings: ClassicWorkerSettings,
        member: ClassicMember,
        link: CoordinatorLink,
        items: HeldItems,
        rounds: Rounds,
        beat: ClassicHeartbeat,
    ) -> None:
        self._settings = settings
        self._member = member
        self._link = link
        self._items = items
        self._rounds = rounds
        self._beat = beat
        self.closed = False
        """Whether a final leave has completed."""
        self._requested: LeaveRequested | None = None
        """The user's request."""
        self._open: ms.SendLeave | None = None
        """The unanswered request."""
        self._back_ms = 0
        """When a worker that could not lead tries again."""
        self._wanted_offset = -1
        """The config offset that it did not know."""
        self._gives_up_leading = False

    @property
    def deadline_ms(self) -> int | None:
        """When the user stops waiting, or a worker that could not lead comes back."""
        if self._member.state is ClassicState.STALE and not self._items.is_stopping:
            return self._back_ms
        return None if self._requested is None else self._requested.deadline_ms

    @property
    def may_be_sent(self) -> bool:
        """Whether LeaveGroup can be sent, or skipped."""
        return self._member.state is ClassicState.LEAVING and self._open is None

    # -- beginning ---------------------------------------------------------------------------

    def request(self, leave: LeaveRequested) -> None:
        """The user wants to leave."""
        member = self._member
        self._requested = leave
        if member.is_in_group:
            self._prepare("the worker leaves")
        elif member.state in (ClassicState.FENCED, ClassicState.STALE):
            member.move(st.LeaveAsked, "the worker leaves")
            self.complete(None)
        elif member.state in (ClassicState.UNSUBSCRIBED, ClassicState.FATAL):
            self.complete(None)
        # PREPARE_LEAVING, LEAVING: it shares the result of the leave in progress.

    def give_up_leading(self, wanted_offset: int) -> None:
        """The worker cannot lead without this configuration: leave, so that another worker
        leads."""
        self._gives_up_leading = True
        self._wanted_offset = wanted_offset
        self._prepare("it leads, and does not know the configuration that others know")

    def _prepare(self, why: str) -> None:
        member = self._member
        self._rounds.end()
        member.not_before_ms = member.now_ms
        member.move(st.LeaveAsked, why)
        self._items.stop_all(last=True)

    # -- LeaveGroup --------------------------------------------------------------------------

    def send(self) -> bool:
        """Send LeaveGroup, or complete the leave without it; returns whether it did either."""
        member, leave = self._member, self._requested
        if not self.may_be_sent:
            return False
        stays = leave is not None and leave.mode is LeaveMode.REMAIN_IN_GROUP
        if not member.member_id or stays:  # the group notices when the session ends
            self.end(None)
            return True
        if not self._link.known or member.is_pausing:
            return False
        why = "the worker cannot lead" if self._gives_up_leading else "the worker is stopped"
        timeout_ms = self._settings.request_timeout_ms
        self._open = ms.SendLeave(member.number(), timeout_ms, member.member_id, why)
        member.emit(self._open)
        return True

    def take_answer(self, attempt: int) -> bool:
        """Whether this number is that of the open LeaveGroup, which is then closed."""
        if self._open is None or attempt != self._open.attempt:
            return False
        self._open = None
        return True

    def answered(self, answer: ms.ClassicAnswer) -> None:
        """LeaveGroup was answered or lost."""
        match answer:
            case ms.RequestFailed():
                self.end(answer.error)
            case ms.RequestLost():
                self._link.lost("the leave was not answered")
                self._member.pause()
            case ms.RequestRefused():
                self._refused(answer)
            case _:
                self.end(None)

    def _refused(self, refused: ms.RequestRefused) -> None:
        error = classic_error(refused.api, refused.code)
        match reaction(refused.code):
            case Reaction.RETRY:
                self._member.pause()
            case Reaction.REDISCOVER:
                self._link.lost(error.name)
                self._member.pause()
            case Reaction.FATAL:
                self.end(error)
            case _:
                self.end(None)  # it is not in the group

    # -- completion --------------------------------------------------------------------------

    def give_up(self) -> bool:
        """Whether the time for the leave is over. If so, it ends here, and the group notices when
        the session ends."""
        leave = self._requested
        if leave is None or self._member.now_ms < leave.deadline_ms:
            return False
        self.end(LocalProtocolError("the time for the leave is over"))
        return True

    def end(self, error: Kip848Error | None) -> None:
        """The worker has left. If it left only to let another worker lead, it comes back after
        ``worker_unsync_backoff_ms`` at the latest."""
        member = self._member
        self._rounds.end_membership()
        self._beat.drop()
        self._link.stop_expecting_answers()
        member.member_id = ""
        self._open = None
        gives_up, self._gives_up_leading = self._gives_up_leading, False
        if gives_up and self._requested is None:
            self._back_ms = member.now_ms + self._settings.worker_unsync_backoff_ms
            member.move(st.GaveUpLeading, "it has left, so that another leads")
            member.emit(ReadConfiguration(self._wanted_offset))
        else:
            member.move(st.LeaveDone, "it has left")
            self.complete(error)

    def complete(self, error: Kip848Error | None) -> None:
        """Report the result to the user, if requested."""
        leave, self._requested = self._requested, None
        if leave is not None:
            self.closed = leave.final
            self._member.emit(LeaveCompleted(error))

    def come_back(self) -> bool:
        """Whether a worker that could not lead rejoins now."""
        member, known = self._member, self._rounds.configuration.offset
        if member.state is not ClassicState.STALE or self._items.is_stopping:
            return False
        if member.now_ms < self._back_ms and known < self._wanted_offset:
            return False
        self._rounds.join("it knows the configuration, or has waited long enough")
        return True
