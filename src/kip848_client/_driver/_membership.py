"""What every membership has: an id, and two requests. Each is sent once, and each ending is one
event."""

from __future__ import annotations

import base64
import logging
import secrets
from collections.abc import Callable, Mapping
from typing import Any, Final

from kip848_client._ports import ConnectionBroken, Transport, VersionLimits
from kip848_client._types import MemberId
from kip848_client.errors import (
    BrokerError,
    Kip848Error,
    ProtocolError,
    RequestTimedOut,
    TransportError,
    UnsupportedVersion,
)
from kip848_client.member import (
    CoordinatorFound,
    CoordinatorLookupFailed,
    FindCoordinator,
    HeartbeatAnswered,
    HeartbeatFailed,
    HeartbeatLost,
    HeartbeatOutcome,
    HeartbeatRefused,
    LossReason,
    SendHeartbeat,
)

__all__ = ["CoordinatorTrouble", "ask_for_coordinator", "ask_heartbeat", "new_member_id"]

_log = logging.getLogger("kip848_client")

_MEMBER_ID_BYTES: Final = 16


def new_member_id() -> MemberId:
    """A UUID's worth of real randomness, as Kafka's documentation asks for (KIP-1082)."""
    raw = secrets.token_bytes(_MEMBER_ID_BYTES)
    return MemberId(base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii"))


class CoordinatorTrouble:
    """Why the coordinator does not do its work, as far as a broker or the network said."""

    def __init__(self) -> None:
        self._said = ""

    def hear(self, why: str) -> None:
        """The newest request failed, and why. Empty: it did not fail."""
        self._said = why

    @property
    def is_known(self) -> bool:
        """Whether there is a reason."""
        return bool(self._said)

    @property
    def why_silent(self) -> str:
        """The reason, for people."""
        return self._said or "it has not answered"


async def ask_heartbeat(
    transport: Transport,
    command: SendHeartbeat,
    request: Any,
    versions: VersionLimits,
    outcome: Callable[[Any], HeartbeatOutcome],
    unsupported: Callable[[UnsupportedVersion], Kip848Error],
    heard: Callable[[str], None],
) -> HeartbeatAnswered | HeartbeatLost | HeartbeatFailed:
    """A heartbeat, to the coordinator that is known. ``unsupported`` makes the error for a broker
    without the protocol. ``heard`` gets the reason of a failure, empty after success."""
    attempt, timeout_ms = command.attempt, command.timeout_ms
    try:
        answer = await transport.coordinator(request, versions=versions, timeout_ms=timeout_ms)
    except UnsupportedVersion as err:
        return HeartbeatFailed(attempt, unsupported(err))
    except RequestTimedOut as err:
        heard(str(err))
        return HeartbeatLost(attempt, LossReason.TIMED_OUT)
    except (ConnectionBroken, ProtocolError) as err:
        heard(str(err))
        return HeartbeatLost(attempt, LossReason.DISCONNECTED)
    except TransportError as err:
        heard(str(err))
        return HeartbeatLost(attempt, LossReason.NOT_SENT)
    except BrokerError as err:
        return HeartbeatFailed(attempt, err)
    found = outcome(answer)
    heard(f"the heartbeat was refused: {found.name}" if isinstance(found, HeartbeatRefused) else "")
    return HeartbeatAnswered(attempt, found)


async def ask_for_coordinator(
    transport: Transport,
    command: FindCoordinator,
    unsupported: Callable[[UnsupportedVersion], Kip848Error],
    group_id: str,
    fields: Mapping[str, object],
    heard: Callable[[str], None],
) -> CoordinatorFound | CoordinatorLookupFailed:
    """FindCoordinator, to any broker. ``heard`` gets the reason of a failure."""
    try:
        await transport.find_coordinator()
    except BrokerError as err:
        heard(str(err))
        return CoordinatorLookupFailed(command.lookup, err)
    except UnsupportedVersion as err:
        return CoordinatorLookupFailed(command.lookup, unsupported(err))
    except Kip848Error as err:
        heard(str(err))
        _log.debug("group %s: no coordinator: %s", group_id, err, extra=dict(fields))
        return CoordinatorLookupFailed(command.lookup)
    return CoordinatorFound(command.lookup)
