"""Translation of aiokafka's exceptions into ours, in one place."""

from __future__ import annotations

import asyncio

from aiokafka import errors as theirs

from kip848_client.core.ports import ConnectionBroken, NotSent
from kip848_client.core.short import error_text, short
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import (
    BrokerError,
    Kip848Error,
    RequestTimedOut,
    UnsupportedVersion,
    refusal,
)

__all__ = ["not_opened", "translated"]

_TRANSPORT = (
    theirs.KafkaConnectionError,
    theirs.NodeNotReadyError,
    theirs.CorrelationIdError,
    theirs.StaleMetadata,
    theirs.NoBrokersAvailable,
    OSError,
    asyncio.IncompleteReadError,
)


def translated(error: BaseException, where: str) -> Kip848Error:
    """Translate ``error``, raised by aiokafka or the socket.

    ``where`` names the request and its target, e.g. ``"FindCoordinator to 10.0.0.7:9092"``. An
    error with a Kafka code keeps it; any connection error becomes ``ConnectionBroken``.
    """
    if isinstance(error, Kip848Error):
        return error
    if isinstance(error, theirs.RequestTimedOutError | theirs.KafkaTimeoutError | TimeoutError):
        return RequestTimedOut(f"{where}: no answer in time")
    if isinstance(error, theirs.IncompatibleBrokerVersion | theirs.UnsupportedVersionError):
        return UnsupportedVersion(f"{where}: {error}")
    if isinstance(error, _TRANSPORT):
        cause = error.__cause__
        reason = f"{error}; {short(cause)}" if cause is not None else str(error)
        return ConnectionBroken(f"{where}: {reason or type(error).__name__}")
    if isinstance(error, theirs.BrokerResponseError):
        code = int(getattr(error, "errno", ErrorCode.UNKNOWN_SERVER_ERROR))
        said = ", ".join(str(each) for each in error.args) or None
        return refusal(code, said, api=where)
    if _is_template(error.args):
        said = f"{type(error).__name__}: {str(error.args[0]) % error.args[1:]}"
    else:
        said = error_text(error)
    return Kip848Error(f"{where}: {said}")


def not_opened(error: Exception, where: str) -> BrokerError | NotSent:
    """Translate ``error``, raised while opening a connection.

    Opening also runs third-party code: a token provider, a SASL library, an ssl context. Whatever
    it raises, nothing was sent and a retry may succeed. Only a refusal by the broker remains a
    ``BrokerError``.
    """
    ours = translated(error, where)
    return ours if isinstance(ours, BrokerError) else NotSent(str(ours))


def _is_template(arguments: tuple[object, ...]) -> bool:
    """Whether an error was raised with a format string and its values, as aiokafka sometimes
    does."""
    first = arguments[0] if arguments else None
    return isinstance(first, str) and first.count("%s") == len(arguments) - 1 > 0
