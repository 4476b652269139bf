"""Common parts of all memberships: the id, and two requests. Each is sent once, and each outcome is
one event."""

from __future__ import annotations

import base64
import logging
import secrets
from collections.abc import Callable, Mapping
from typing import Any, Final

from kip848_client.core.member import (
    CoordinatorFound,
    CoordinatorLookupFailed,
    FindCoordinator,
    HeartbeatAnswered,
    HeartbeatFailed,
    HeartbeatLost,
    HeartbeatOutcome,
    LossReason,
    SendHeartbeat,
)
from kip848_client.core.ports import ConnectionBroken, Transport
from kip848_client.core.types import MemberId, VersionLimits
from kip848_client.errors import (
    BrokerError,
    Kip848Error,
    ProtocolError,
    RequestTimedOut,
    TransportError,
    UnsupportedVersion,
)

__all__ = ["ask_for_coordinator", "ask_heartbeat", "new_member_id"]

_log = logging.getLogger("kip848_client")

_MEMBER_ID_BYTES: Final = 16


def new_member_id() -> MemberId:
    """A UUID's worth of real randomness, as Kafka's documentation requires (KIP-1082)."""
    raw = secrets.token_bytes(_MEMBER_ID_BYTES)
    return MemberId(base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii"))


async def ask_heartbeat(
    transport: Transport,
    command: SendHeartbeat,
    request: Any,
    versions: VersionLimits,
    outcome: Callable[[Any], HeartbeatOutcome],
    unsupported: Callable[[UnsupportedVersion], Kip848Error],
) -> HeartbeatAnswered | HeartbeatLost | HeartbeatFailed:
    """Send a heartbeat to the known coordinator. ``unsupported`` builds the error for a broker
    without the protocol."""
    attempt, timeout_ms = command.attempt, command.timeout_ms
    try:
        answer = await transport.coordinator(request, versions=versions, timeout_ms=timeout_ms)
    except UnsupportedVersion as err:
        return HeartbeatFailed(attempt, unsupported(err))
    except RequestTimedOut as err:
        return HeartbeatLost(attempt, LossReason.TIMED_OUT, str(err))
    except (ConnectionBroken, ProtocolError) as err:
        return HeartbeatLost(attempt, LossReason.DISCONNECTED, str(err))
    except TransportError as err:
        return HeartbeatLost(attempt, LossReason.NOT_SENT, str(err))
    except BrokerError as err:
        return HeartbeatFailed(attempt, err)
    return HeartbeatAnswered(attempt, outcome(answer))


async def ask_for_coordinator(
    transport: Transport,
    command: FindCoordinator,
    unsupported: Callable[[UnsupportedVersion], Kip848Error],
    group_id: str,
    fields: Mapping[str, object],
) -> CoordinatorFound | CoordinatorLookupFailed:
    """Send FindCoordinator to any broker."""
    try:
        await transport.find_coordinator()
    except BrokerError as err:
        return CoordinatorLookupFailed(command.lookup, err)
    except UnsupportedVersion as err:
        return CoordinatorLookupFailed(command.lookup, unsupported(err))
    except Kip848Error as err:
        _log.debug("group %s: no coordinator: %s", group_id, err, extra=dict(fields))
        return CoordinatorLookupFailed(command.lookup, why=str(err))
    return CoordinatorFound(command.lookup)
