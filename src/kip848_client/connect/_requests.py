"""The requests of a worker. Each is sent once, and each result is one event."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kip848_client.connect.core._commands import InstallTarget, PrepareTarget
from kip848_client.connect.core._events import ComputingImpossible, ComputingLost, WorkerEvent
from kip848_client.connect.core._wire import (
    heartbeat_outcome,
    heartbeat_request,
    install_outcome,
    install_request,
    prepare_outcome,
    prepare_request,
)
from kip848_client.core.member import Event, FindCoordinator, SendHeartbeat
from kip848_client.core.ports import Transport
from kip848_client.core.types import GroupId, MemberId
from kip848_client.error_codes import passes_in_lookup
from kip848_client.errors import (
    BrokerError,
    Kip848Error,
    ProtocolUnsupported,
    TransportError,
    UnsupportedVersion,
)
from kip848_client.runtime._membership import (
    ask_for_coordinator,
    ask_heartbeat,
)

__all__ = ["WorkerRequests", "unsupported"]

_HEARTBEAT_VERSIONS: Final = (0, 0)


def unsupported(where: str) -> ProtocolUnsupported:
    """The error for a broker without groups of type connect."""
    return ProtocolUnsupported(
        35,
        "UNSUPPORTED_VERSION",
        f"{where} does not offer it: workers cannot share connectors there",
        api="ConnectGroupHeartbeat (API key 10482)",
        hint="groups of type connect are a proposal and in no Kafka release, but in MockBroker and "
        "`kip848 mock` (docs/reference/draft-protocols.md)",
    )


class WorkerRequests:
    """Sends the core's requests."""

    def __init__(
        self,
        group_id: GroupId,
        member_id: MemberId,
        transport: Transport,
        fields: Mapping[str, object],
    ) -> None:
        self._group_id = group_id
        self._member_id = member_id
        self._transport = transport
        self._fields = fields

    def forget_coordinator(self) -> None:
        """Look the coordinator up again before the next request to it."""
        self._transport.forget_coordinator()

    async def ask(
        self, command: SendHeartbeat | PrepareTarget | InstallTarget
    ) -> Event | WorkerEvent:
        """Send the command's request to the coordinator."""
        match command:
            case SendHeartbeat():
                return await self.heartbeat(command)
            case PrepareTarget():
                return await self.prepare(command)
            case InstallTarget():
                return await self.install(command)

    async def heartbeat(self, command: SendHeartbeat) -> Event:
        """Send ConnectGroupHeartbeat to the known coordinator."""
        request = heartbeat_request(self._group_id, command.intent)
        return await ask_heartbeat(
            self._transport,
            command,
            request,
            _HEARTBEAT_VERSIONS,
            heartbeat_outcome,
            self._unsupported,
        )

    async def find_coordinator(self, command: FindCoordinator) -> Event:
        """Send FindCoordinator to any broker."""
        return await ask_for_coordinator(
            self._transport,
            command,
            self._unsupported,
            self._group_id,
            self._fields,
        )

    async def prepare(self, command: PrepareTarget) -> WorkerEvent:
        """Send ConnectGroupPrepareAssignment to the coordinator, looking it up if necessary."""
        request = prepare_request(self._group_id, self._member_id, command)
        answer = await self._of_coordinator(command, request)
        if isinstance(answer, ComputingLost | ComputingImpossible):
            return answer
        return prepare_outcome(command.number, answer)

    async def install(self, command: InstallTarget) -> WorkerEvent:
        """Send ConnectGroupInstallAssignment to the coordinator, looking it up if necessary."""
        request = install_request(self._group_id, self._member_id, command)
        answer = await self._of_coordinator(command, request)
        if isinstance(answer, ComputingLost | ComputingImpossible):
            return answer
        return install_outcome(command.number, answer)

    async def _of_coordinator(self, command: PrepareTarget | InstallTarget, request: Any) -> Any:
        number = command.number
        try:
            await self._transport.find_coordinator()
            return await self._transport.coordinator(request, timeout_ms=command.timeout_ms)
        except TransportError as err:
            return ComputingLost(number, str(err))
        except Kip848Error as err:
            if isinstance(err, BrokerError) and passes_in_lookup(err.code):
                return ComputingLost(number, str(err))
            return ComputingImpossible(number, err)

    def _unsupported(self, _err: UnsupportedVersion) -> Kip848Error:
        return unsupported("the coordinator")
