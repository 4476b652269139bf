"""aiokafka's errors, and errors of KIP-848 and of transactions that aiokafka lacks.

All names of aiokafka's ``errors`` are available here. The classes below derive from both aiokafka's
``KafkaError``, which frameworks catch, and from our error, with its attributes. ``translated`` is
the one place where an error of ours becomes one that users of aiokafka expect; ``__cause__`` is the
original.
"""

from __future__ import annotations

from typing import Any, Final

import kip848_client.errors as ours
from kip848_client.aiokafka._parents import errors as theirs
from kip848_client.error_codes import ErrorCode

__all__ = [
    "CommitInDoubtError",
    "FencedInstanceIdError",
    "FencedMemberEpochError",
    "GroupMaxSizeReachedError",
    "InvalidRegularExpressionError",
    "OffsetsNotCommittedError",
    "ProducerFailedError",
    "RefusedByBrokerError",
    "StaleMemberEpochError",
    "TransactionAbortedError",
    "Translating",
    "UnreleasedInstanceIdError",
    "UnsupportedAssignorError",
    "translated",
]


class RefusedByBrokerError(
    ours.BrokerError,
    theirs.BrokerResponseError,  # type: ignore[misc]  # aiokafka has no types
):
    """A broker refused a request with a code that aiokafka has no class for; ``errno`` (also
    ``code``) is the code."""

    def __init__(
        self, code: int, name: str, broker_message: str | None = None, **about: Any
    ) -> None:
        super().__init__(code, name, broker_message, **about)
        self.errno = code


class FencedMemberEpochError(RefusedByBrokerError, ours.FencedMemberEpoch):
    """FENCED_MEMBER_EPOCH."""


class StaleMemberEpochError(RefusedByBrokerError, ours.StaleMemberEpoch):
    """STALE_MEMBER_EPOCH."""


class FencedInstanceIdError(RefusedByBrokerError, ours.FencedInstanceId):
    """FENCED_INSTANCE_ID: another member has taken the ``group_instance_id`` over."""


class UnreleasedInstanceIdError(RefusedByBrokerError, ours.UnreleasedInstanceId):
    """UNRELEASED_INSTANCE_ID: the ``group_instance_id`` is held by a live member."""


class GroupMaxSizeReachedError(RefusedByBrokerError, ours.GroupMaxSizeReached):
    """GROUP_MAX_SIZE_REACHED."""


class UnsupportedAssignorError(RefusedByBrokerError, ours.UnsupportedAssignor):
    """UNSUPPORTED_ASSIGNOR."""


class InvalidRegularExpressionError(RefusedByBrokerError, ours.InvalidRegularExpression):
    """INVALID_REGULAR_EXPRESSION: the broker refuses the pattern."""


class OffsetsNotCommittedError(
    ours.CommitFailed,
    theirs.CommitFailedError,  # type: ignore[misc]  # aiokafka has no types
):
    """Offsets were not committed; see ``kip848_client.CommitFailed``."""

    def __init__(self, message: str, **about: Any) -> None:
        super().__init__(message, **about)
        self.args = (message,)  # aiokafka's begins with a text that may be wrong


class TransactionAbortedError(
    ours.TransactionAborted,
    theirs.KafkaError,  # type: ignore[misc]  # aiokafka has no types
):
    """The transaction cannot be committed; abort it, and begin the next one."""


class CommitInDoubtError(
    ours.CommitInDoubt,
    theirs.KafkaTimeoutError,  # type: ignore[misc]  # aiokafka has no types
):
    """A commit was not answered in time; call ``commit_transaction`` again to get its outcome."""


class ProducerFailedError(
    ours.ProducerFailed,
    theirs.KafkaError,  # type: ignore[misc]  # aiokafka has no types
):
    """This producer cannot continue; create a new one."""


_OWN: Final[dict[type[ours.BrokerError], type[RefusedByBrokerError]]] = {
    ours.FencedMemberEpoch: FencedMemberEpochError,
    ours.StaleMemberEpoch: StaleMemberEpochError,
    ours.FencedInstanceId: FencedInstanceIdError,
    ours.UnreleasedInstanceId: UnreleasedInstanceIdError,
    ours.GroupMaxSizeReached: GroupMaxSizeReachedError,
    ours.UnsupportedAssignor: UnsupportedAssignorError,
    ours.InvalidRegularExpression: InvalidRegularExpressionError,
}

_BY_TYPE: Final[tuple[tuple[type[ours.Kip848Error], type[Exception]], ...]] = (
    (ours.ConsumerClosed, theirs.ConsumerStoppedError),
    (ours.NotAssigned, theirs.IllegalStateError),
    (ours.LocalProtocolError, theirs.IllegalStateError),
    (ours.RequestTimedOut, theirs.KafkaTimeoutError),
    (ours.DeliveryTimedOut, theirs.KafkaTimeoutError),
    (ours.TransportError, theirs.KafkaConnectionError),
    (ours.NoOffsetForPartition, theirs.NoOffsetForPartitionError),
    (ours.TopicGone, theirs.UnknownTopicOrPartitionError),
    (ours.RecordTooLarge, theirs.MessageSizeTooLargeError),
    (ours.UnsupportedVersion, theirs.UnsupportedVersionError),
    (ours.ProducerFenced, theirs.ProducerFenced),
)
"""The first match counts, by the text of our error."""


_NOT_A_MEMBER: Final = (
    ours.NotAssigned,
    ours.UnknownMemberId,
    ours.FencedMemberEpoch,
    ours.StaleMemberEpoch,
    ours.FencedInstanceId,
)


def translated(error: ours.Kip848Error) -> Exception:
    """The error that users of aiokafka expect; its ``__cause__`` is ``error``."""
    if isinstance(error, ours.RecordUnreadable):
        given = error.__cause__
        if isinstance(given, Exception) and not isinstance(given, ours.Kip848Error):
            return given  # an error of a deserializer stays as it is
    made = _translated(error)
    made.__cause__ = error
    return made


def _translated(error: ours.Kip848Error) -> Exception:
    if isinstance(error, ours.ConfigError):
        return ValueError(str(error))
    if isinstance(error, ours.RecordUnreadable):
        return _new(theirs.CorruptRecordException, str(error))
    if isinstance(error, ours.CommitFailed):
        return OffsetsNotCommittedError(_said(error), offsets=error.offsets, cause=error.cause)
    if isinstance(error, ours.OffsetOutOfRange):
        return _new(theirs.OffsetOutOfRangeError, {(error.topic, error.partition): error.offset})
    if isinstance(error, ours.BrokerError):
        return _refused(error)
    if isinstance(error, ours.DeliveryTimedOut) and error.last_code is not None:
        last = theirs.for_code(error.last_code)
        if last is not theirs.UnknownError:  # aiokafka, too, raises the last error of the broker
            return _new(last, str(error))
    for kind, instead in _BY_TYPE:
        if isinstance(error, kind):
            return instead(str(error))
    if isinstance(error, ours.TransactionAborted):
        return TransactionAbortedError(str(error), cause=_why(error.cause))
    if isinstance(error, ours.CommitInDoubt):
        return CommitInDoubtError(str(error), cause=_why(error.cause))
    if isinstance(error, ours.ProducerFailed):
        return ProducerFailedError(
            str(error), cause=_why(error.cause), maybe_committed=error.maybe_committed
        )
    return _new(theirs.KafkaError, str(error))


def _said(error: ours.CommitFailed) -> str:
    """With a text that programs search: faust continues if it finds "already rebalanced"."""
    gone = isinstance(error.cause, _NOT_A_MEMBER)
    return f"{error}; the group has already rebalanced" if gone else str(error)


def _new(kind: Any, *arguments: object) -> Exception:
    made: Exception = kind(*arguments)
    return made


def _why(cause: BaseException | None) -> BaseException | None:
    return translated(cause) if isinstance(cause, ours.Kip848Error) else cause


def _refused(error: ours.BrokerError) -> Exception:
    kind = theirs.for_code(error.code)
    if kind is not theirs.UnknownError or error.code == ErrorCode.UNKNOWN_SERVER_ERROR:
        return _new(kind, str(error))
    own = _OWN.get(type(error), RefusedByBrokerError)
    return own(
        error.code,
        error.name,
        error.broker_message,
        api=error.api,
        retriable=error.retriable,
        hint=error.hint,
    )


class Translating:
    """``with translating:`` raises aiokafka's errors instead of ours. It can be used
    concurrently."""

    def __enter__(self) -> None:
        """Nothing is kept."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, ours.Kip848Error):
            raise self.instead_of(error)

    def instead_of(self, error: ours.Kip848Error) -> Exception:
        """The error to raise instead."""
        return translated(error)


def __getattr__(name: str) -> Any:
    """All other names of aiokafka's module."""
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(theirs, name)
