"""A worker's rounds in a classic group: JoinGroup, SyncGroup, the items that an assignment stops
and starts, and the reasons for another round."""

from __future__ import annotations

from typing import Final

from kip848_client.connect.core import _classic_messages as ms
from kip848_client.connect.core import _classic_states as st
from kip848_client.connect.core._classic_items import HeldItems
from kip848_client.connect.core._classic_leading import Leading
from kip848_client.connect.core._classic_member import ClassicMember
from kip848_client.connect.core._classic_model import ClassicWorkerSettings
from kip848_client.connect.core._classic_states import ClassicState
from kip848_client.connect.core._commands import ReadConfiguration
from kip848_client.connect.core._model import Configuration
from kip848_client.core.connect import ConnectProtocol, Led, WorkerAssignment, WorkerMetadata
from kip848_client.core.member import Report, Severity
from kip848_client.errors import WireError

__all__ = ["Rounds"]

_JOIN_GRACE_MS: Final = 5_000
"""How much longer a JoinGroup may take than the rebalance timeout."""


class Rounds:
    """This worker's round, if any, and the result of the last one."""

    def __init__(
        self,
        settings: ClassicWorkerSettings,
        member: ClassicMember,
        items: HeldItems,
        leading: Leading,
    ) -> None:
        self._settings = settings
        self._member = member
        self._items = items
        self._leading = leading
        self.configuration = Configuration()
        self.assignment = WorkerAssignment()
        """The newest assignment."""
        self.protocol = settings.connect_protocol
        """The embedded protocol that the group last agreed on."""
        self._completed = -1
        """The newest generation whose assignment has arrived."""
        self._asking: ms.WaitingRequest | None = None
        """The request that waits at the coordinator."""
        self.asked_ms = 0
        self._wanted = ""
        """Why this worker wants another round; empty if it does not."""
        self._delay_ends_ms: int | None = None

    # -- queries -----------------------------------------------------------------------------

    @property
    def is_waiting(self) -> bool:
        """Whether a request waits at the coordinator."""
        return self._asking is not None

    @property
    def may_join(self) -> bool:
        """Whether JoinGroup can be sent."""
        return self._member.state is ClassicState.JOINING and self._asking is None

    @property
    def due_ms(self) -> int | None:
        """When work is due without another event; ``None`` for never."""
        match self._member.state:
            case ClassicState.SYNCING:
                return self._leading.gives_up_ms
            case ClassicState.STABLE:
                times = [self._delay_ends_ms, self._member.not_before_ms if self._wanted else None]
                return min((time for time in times if time is not None), default=None)
            case _:
                return None

    def remaining_delay_ms(self, now_ms: int) -> int:
        """The rest of the delay that the newest assignment announced; 0 for none."""
        return 0 if self._delay_ends_ms is None else max(0, self._delay_ends_ms - now_ms)

    # -- next round --------------------------------------------------------------------------

    def want(self, why: str) -> None:
        """Begin another round as soon as possible."""
        self._wanted = self._wanted or why

    def join(self, why: str) -> None:
        """Rejoin as soon as the coordinator is known and no pause is left."""
        self._asking = None
        self._leading.drop()
        self._member.move(st.JoinsAgain, why)

    def _again(self, why: str) -> None:
        """Rejoin after a growing pause."""
        self._member.pause()
        self.want(why)
        self.join(why)

    def end(self) -> None:
        """The worker leaves the round and begins no other."""
        self._asking = None
        self._leading.follow()
        self._wanted = ""
        self._delay_ends_ms = None

    def end_membership(self) -> None:
        """The worker is not in the group any more."""
        self.end()
        self._member.generation = self._completed = -1

    def lost_coordinator(self, why: str) -> None:
        """Restart the current round, if any, at the next coordinator."""
        if self._member.state is ClassicState.SYNCING:
            self._again(why)
        elif self._member.state is ClassicState.JOINING:
            self._asking = None
            self.want(why)
            self._member.pause()

    def is_another(self, cause: str, *, begins: bool) -> None:
        """The answer to a heartbeat showed that the group is in another round. ``begins``: it has
        just begun."""
        state = self._member.state
        if state in (ClassicState.STABLE, ClassicState.RECONCILING):
            self.want(cause)
        elif state is ClassicState.SYNCING and begins:
            self.want(cause)  # whatever the answer to SyncGroup, if any
            self.join(cause)
        # Otherwise the answer to the open request is on its way and has newer information.

    def begin(self) -> bool:
        """Begin the next round if it is due; returns whether it did anything."""
        member, items = self._member, self._items
        outdated = items.outdated(self.configuration)
        if outdated:
            self.want("the tasks have a new configuration")
            member.move(st.Revokes, "the tasks have a new configuration")
            items.stop(outdated)
            return True
        if not self._wanted or member.is_pausing:
            return False
        if not self.protocol.is_incremental and items.runs_something:
            member.move(st.Revokes, "on the eager protocol everything stops before a round")
            items.stop_all()
        else:
            self.join(self._wanted)
        return True

    def end_delay(self) -> bool:
        """Whether the delay announced by the assignment ended just now."""
        member, ends_ms = self._member, self._delay_ends_ms
        if member.state is not ClassicState.STABLE or ends_ms is None or member.now_ms < ends_ms:
            return False
        self._delay_ends_ms = None
        self.want("the scheduled delay is over")
        return True

    # -- JoinGroup ---------------------------------------------------------------------------

    def send_join(self) -> None:
        """Send JoinGroup for the next round."""
        settings, member = self._settings, self._member
        url, offset, runs = settings.url, self.configuration.offset, self._items.reported
        self._ask(
            ms.SendJoin(
                member.number(),
                settings.rebalance_timeout_ms + _JOIN_GRACE_MS,
                member.member_id,
                settings.session_timeout_ms,
                settings.rebalance_timeout_ms,
                tuple(
                    (each.group_protocol, WorkerMetadata(url, offset, runs, each).encode())
                    for each in settings.connect_protocol.offered
                ),
                self._wanted or "the worker joins",
            )
        )
        self._wanted = ""

    def joined(self, joined: ms.Joined, protocol: ConnectProtocol) -> None:
        """JoinGroup was answered: a new generation has begun."""
        member, items, leading = self._member, self._items, self._leading
        member.member_id, member.generation = joined.member_id, joined.generation
        member.move(st.MembersKnown, f"generation {joined.generation}")
        turns_eager = self.protocol.is_incremental and not protocol.is_incremental
        self.protocol = protocol
        if turns_eager and items.runs_something:
            self.want("the group has become eager")
            member.move(st.Revokes, "the group has become eager: everything stops before a round")
            items.stop_all()
        elif joined.leader != joined.member_id:
            leading.follow()
            self._sync(joined, None)
        else:
            led = leading.compute(member.now_ms, joined, self.configuration, self._completed)
            if led is None:
                member.emit(ReadConfiguration(leading.wanted_offset))
            else:
                self._sync(joined, led)

    # -- SyncGroup ---------------------------------------------------------------------------

    def _sync(self, joined: ms.Joined, led: Led | None) -> None:
        if led is not None:
            for error in self._leading.complaints(led):
                self._member.emit(Report(error, Severity.NOTICE))
        self._ask(
            ms.SendSync(
                self._member.number(),
                self._settings.rebalance_timeout_ms + _JOIN_GRACE_MS,
                joined.member_id,
                joined.generation,
                joined.protocol,
                {} if led is None else led.assignments,
            )
        )

    def synced(self, raw: bytes) -> None:
        """SyncGroup was answered with an assignment."""
        member = self._member
        try:
            said = WorkerAssignment.decode(raw)
        except WireError as err:
            member.emit(Report(err, Severity.NOTICE))
            self._again(f"the assignment cannot be read: {err}")
            return
        self.assignment, self._completed = said, member.generation
        if said.error:
            if said.config_offset > self.configuration.offset:
                member.emit(ReadConfiguration(said.config_offset))
            self._again(f"the leader could not assign (error {said.error})")
            return
        member.end_pauses()
        self._delay_ends_ms = member.now_ms + said.delay_ms if said.delay_ms else None
        member.move(st.Assigned, f"assigned in generation {member.generation}")
        if said.revoked:
            self.want("what was revoked here must be assigned again")
        self._items.take(said, incremental=self.protocol.is_incremental)

    def start(self) -> None:
        """Start the assigned items once the configuration that the assignment is based on is
        known."""
        items = self._items
        if not items.wait_to_start or items.is_stopping:
            return
        if self._wanted and not self.protocol.is_incremental:
            return  # the items would be stopped at once
        if self.configuration.offset < self.assignment.config_offset:
            self._member.emit(ReadConfiguration(self.assignment.config_offset))
        else:
            items.start(self.configuration)

    # -- both requests -----------------------------------------------------------------------

    def _ask(self, request: ms.WaitingRequest) -> None:
        self._asking, self.asked_ms = request, self._member.now_ms
        self._member.emit(request)

    def take_answer(self, attempt: int) -> bool:
        """Whether this number is that of the open request, which is then closed."""
        if self._asking is None or attempt != self._asking.attempt:
            return False
        self._asking = None
        return True

    def refused(self, name: str, *, rejoins: bool) -> None:
        """The coordinator refused the request. ``rejoins``: another round begins, so no pause is
        needed."""
        if self._member.state is not ClassicState.SYNCING:
            self._member.pause()
        elif rejoins:
            self.want(name)
            self.join(name)
        else:
            self._again(name)

    def know(self, configuration: Configuration) -> None:
        """The worker has read this configuration."""
        if configuration.offset < self.configuration.offset:
            return
        self.configuration = configuration
        member = self._member
        if member.state is ClassicState.SYNCING:
            ready = self._leading.go_on(member.now_ms, configuration, self._completed)
            if ready is not None:
                self._sync(*ready)
        if member.state in (ClassicState.STABLE, ClassicState.JOINING, ClassicState.SYNCING):
            self.start()
