"""The requests of a worker in a classic group. Each is sent once, and each result is one event."""

from __future__ import annotations

from collections.abc import Mapping

from kip848_client.connect.core._classic_messages import (
    ClassicAnswer,
    ClassicRequest,
    RequestFailed,
    RequestLost,
    WaitingRequest,
)
from kip848_client.connect.core._classic_wire import VERSIONS, classic_answer, classic_request
from kip848_client.core.member import Event, FindCoordinator, LossReason
from kip848_client.core.ports import ConnectionBroken, WaitingTransport
from kip848_client.core.types import GroupId
from kip848_client.errors import (
    BrokerError,
    Kip848Error,
    ProtocolError,
    RequestTimedOut,
    TransportError,
    UnsupportedVersion,
)
from kip848_client.runtime._membership import ask_for_coordinator

__all__ = ["ClassicRequests"]


class ClassicRequests:
    """Sends the core's requests."""

    def __init__(
        self, group_id: GroupId, transport: WaitingTransport, fields: Mapping[str, object]
    ) -> None:
        self._group_id = group_id
        self._transport = transport
        self._fields = fields

    def forget_coordinator(self) -> None:
        """Look the coordinator up again before the next request to it."""
        self._transport.forget_coordinator()

    async def find_coordinator(self, command: FindCoordinator) -> Event:
        """Send FindCoordinator to any broker."""
        return await ask_for_coordinator(
            self._transport, command, _itself, self._group_id, self._fields
        )

    async def ask(self, command: ClassicRequest) -> ClassicAnswer:
        """Send the command's request to the known coordinator."""
        request = classic_request(self._group_id, command)
        transport, attempt = self._transport, command.attempt
        waits = isinstance(command, WaitingRequest)
        send = transport.coordinator_that_waits if waits else transport.coordinator
        try:
            versions, timeout_ms = VERSIONS[type(command)], command.timeout_ms
            answer = await send(request, versions=versions, timeout_ms=timeout_ms)
        except RequestTimedOut as err:
            return RequestLost(attempt, LossReason.TIMED_OUT, str(err))
        except UnsupportedVersion as err:
            return RequestFailed(attempt, err)
        except (ConnectionBroken, ProtocolError) as err:
            return RequestLost(attempt, LossReason.DISCONNECTED, str(err))
        except TransportError as err:
            return RequestLost(attempt, LossReason.NOT_SENT, str(err))
        except BrokerError as err:
            return RequestFailed(attempt, err)
        return classic_answer(command, answer)


def _itself(err: UnsupportedVersion) -> Kip848Error:
    return err
