"""Every exception that this package raises, as one tree.

::

    Kip848Error
    ├── ConfigError (also ValueError)      a setting is wrong; names it, and similar names
    ├── WireError                          bytes could not be read or written
    │   └── UnsupportedVersion             no common version of an API
    ├── ProtocolError
    │   ├── LocalProtocolError             the current state does not allow this call
    │   └── RemoteProtocolError            the broker's answer violates the protocol
    ├── BrokerError                        the broker refused; has code, name and message
    │   ├── FencedMemberEpoch, UnknownMemberId, StaleMemberEpoch, FencedInstanceId,
    │   │   UnreleasedInstanceId, GroupMaxSizeReached, UnsupportedAssignor,
    │   │   InvalidRegularExpression, GroupIdNotFound, GroupAuthorizationFailed,
    │   │   TopicAuthorizationFailed, InvalidGroupId, InvalidRequest, ProtocolUnsupported
    │   └── UnknownBrokerError             a code that this version does not know
    ├── CommitFailed                       offsets were not committed
    ├── NoOffsetForPartition               no committed offset and auto_offset_reset is "none"
    │   └── OffsetOutOfRange               the position is not in the log, and as above
    │       └── LogTruncated               returned records are no longer in the log
    ├── TopicGone                          a manually assigned topic was deleted
    ├── RecordUnreadable                   a deserializer raised, or the bytes are damaged
    ├── SchemaUnavailable                  a schema registry did not return a schema
    ├── RecordTooLarge (also ValueError)   a record that does not fit into a request
    ├── TransactionAborted                 nothing is committed: abort, rewind, continue
    │   └── TransactionTimedOut            the coordinator ended it before the producer did
    ├── CommitInDoubt                      the outcome is unknown: commit again
    ├── ProducerFailed                     this producer cannot be used: create a new one
    │   └── ProducerFenced                 another producer uses the transactional id
    ├── TransportError
    │   ├── BootstrapFailed                no bootstrap server answered
    │   ├── CoordinatorUnavailable         no coordinator could be found or reached in time
    │   ├── RequestTimedOut                a broker did not answer one request in time
    │   └── DeliveryTimedOut               records were not acknowledged in time
    ├── CallbackError                      a rebalance listener raised or overran its time
    ├── ConsumerClosed                     the consumer is closed
    │   └── ConsumerNotStarted             (also LocalProtocolError) not started yet
    ├── NotAssigned                        this partition is not assigned to this consumer
    └── AdminFailed                        some parts of an admin request failed
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from kip848_client.error_codes import ErrorCode, error_name, is_retriable

__all__ = [
    "AdminFailed",
    "BatchUnreadable",
    "BootstrapFailed",
    "BrokerError",
    "CallbackError",
    "CommitFailed",
    "CommitInDoubt",
    "ConfigError",
    "ConsumerClosed",
    "ConsumerNotStarted",
    "CoordinatorUnavailable",
    "DeliveryTimedOut",
    "FencedInstanceId",
    "FencedMemberEpoch",
    "GroupAuthorizationFailed",
    "GroupIdNotFound",
    "GroupMaxSizeReached",
    "InvalidGroupId",
    "InvalidRegularExpression",
    "InvalidRequest",
    "Kip848Error",
    "LocalProtocolError",
    "LogTruncated",
    "NoOffsetForPartition",
    "NotAssigned",
    "OffsetOutOfRange",
    "ProducerFailed",
    "ProducerFenced",
    "ProtocolError",
    "ProtocolUnsupported",
    "RecordTooLarge",
    "RecordUnreadable",
    "RemoteProtocolError",
    "RequestTimedOut",
    "SchemaUnavailable",
    "StaleMemberEpoch",
    "TopicAuthorizationFailed",
    "TopicGone",
    "TransactionAborted",
    "TransactionTimedOut",
    "TransportError",
    "UnknownBrokerError",
    "UnknownMemberId",
    "UnreleasedInstanceId",
    "UnsupportedAssignor",
    "UnsupportedVersion",
    "WireError",
    "broker_error",
    "not_assigned",
    "refusal",
]


class Kip848Error(Exception):
    """Base class of all exceptions of this package.

    They can be copied and pickled like Python's own, so an error of a worker process reaches the
    process that waits for it. Except for the message, every argument of a constructor is also an
    attribute of the exception with the same name.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self.args), vars(self)


def _again(kind: type[Exception], args: tuple[Any, ...]) -> Exception:
    """Rebuild an exception from its type and args without calling ``__init__``."""
    return kind.__new__(kind, *args)


class ConfigError(Kip848Error, ValueError):
    """A setting is wrong. The message has the setting, its value and the accepted values."""


class WireError(Kip848Error):
    """Bytes or a message could not be decoded from or encoded in the Kafka wire format."""


class UnsupportedVersion(WireError):
    """Client and broker have no common version of an API. The message has both ranges."""


class ProtocolError(Kip848Error):
    """A protocol rule was broken: by the client (``LocalProtocolError``) or the broker
    (``RemoteProtocolError``)."""


class LocalProtocolError(ProtocolError):
    """The current state does not allow this call. Nothing was changed."""


class RemoteProtocolError(ProtocolError):
    """The broker's answer violates the protocol.

    Args:
        message: The text of the exception.
        hint: What the caller should do next; may be empty.
    """

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message if not hint else f"{message} ({hint})")
        self.hint = hint


class BrokerError(Kip848Error):
    """A broker refused a request.

    Args:
        code: Kafka's error code.
        name: Kafka's name of the code, such as ``UNKNOWN_MEMBER_ID``.
        broker_message: The broker's own error message, or ``None``.
        api: The API whose request was refused, such as ``ConsumerGroupHeartbeat``.
        retriable: Whether Kafka classifies the code as retriable.
        hint: What the caller can do about it; may be empty.
    """

    def __init__(
        self,
        code: int,
        name: str,
        broker_message: str | None = None,
        *,
        api: str = "",
        retriable: bool = False,
        hint: str = "",
    ) -> None:
        self.code = code
        self.name = name
        self.broker_message = broker_message
        self.api = api
        self.retriable = retriable
        self.hint = hint
        where = f"{api}: " if api else ""
        said = f": {broker_message}" if broker_message else ""
        way_out = f" ({hint})" if hint else ""
        super().__init__(f"{where}{name} ({code}){said}{way_out}")


class UnknownMemberId(BrokerError):
    """UNKNOWN_MEMBER_ID: the coordinator does not know this member; it was removed or never
    joined."""


class FencedMemberEpoch(BrokerError):
    """FENCED_MEMBER_EPOCH: the member epoch is not the coordinator's; the member must rejoin."""


class StaleMemberEpoch(BrokerError):
    """STALE_MEMBER_EPOCH: an offset request carried an epoch that is no longer current."""


class FencedInstanceId(BrokerError):
    """FENCED_INSTANCE_ID: another member took over this ``group_instance_id``."""


class UnreleasedInstanceId(BrokerError):
    """UNRELEASED_INSTANCE_ID: the ``group_instance_id`` is still held by a live member."""


class GroupMaxSizeReached(BrokerError):
    """GROUP_MAX_SIZE_REACHED: the group is full (``group.consumer.max.size``)."""


class UnsupportedAssignor(BrokerError):
    """UNSUPPORTED_ASSIGNOR: the broker does not offer this server-side assignor, or the versions of
    this member's client-side assignors are not compatible with those of the other members."""


class InvalidRegularExpression(BrokerError):
    """INVALID_REGULAR_EXPRESSION: the broker's RE2 engine refuses the subscription pattern."""


class GroupIdNotFound(BrokerError):
    """GROUP_ID_NOT_FOUND: the group does not exist or has another type."""


class GroupAuthorizationFailed(BrokerError):
    """GROUP_AUTHORIZATION_FAILED: this principal may not use the group."""


class TopicAuthorizationFailed(BrokerError):
    """TOPIC_AUTHORIZATION_FAILED: this principal may not read one of the topics."""


class InvalidGroupId(BrokerError):
    """INVALID_GROUP_ID: the group id is invalid."""


class InvalidRequest(BrokerError):
    """INVALID_REQUEST: the broker finds the request malformed."""


class ProtocolUnsupported(BrokerError):
    """UNSUPPORTED_VERSION: the broker does not support any KIP-848 version of this client."""


class UnknownBrokerError(BrokerError):
    """An error code that this version of the package does not know; it has only a number."""


class CommitFailed(Kip848Error):
    """Offsets were not committed. Records after the last commit will be delivered again.

    Args:
        message: The text of the exception.
        offsets: The offsets that were not committed, by partition.
        cause: The last error, or ``None``.
    """

    def __init__(
        self, message: str, *, offsets: Mapping[Any, Any], cause: BaseException | None = None
    ) -> None:
        super().__init__(message)
        self.offsets = dict(offsets)
        self.cause = cause


class NoOffsetForPartition(Kip848Error):
    """A partition has no committed offset and ``auto_offset_reset="none"`` forbids choosing one."""


class OffsetOutOfRange(NoOffsetForPartition):
    """The position is outside the partition's log, and ``auto_offset_reset="none"`` forbids
    choosing another.

    To continue, ``seek`` to an offset from ``start`` to ``end``.

    Args:
        message: The text of the exception.
        topic: The topic.
        partition: The partition.
        offset: The position that is not in the log.
        start: The first offset of the log.
        end: The offset after the last record of the log.
    """

    def __init__(
        self, message: str, *, topic: str, partition: int, offset: int, start: int, end: int
    ) -> None:
        super().__init__(message)
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.start = start
        self.end = end


class LogTruncated(OffsetOutOfRange):
    """Records that the consumer has returned are no longer in the partition's log: a broker without
    them became the leader (unclean election, KIP-320).

    To continue, undo the effects of the records from ``end`` on, and ``seek`` to ``end``.

    Args:
        message: The text of the exception.
        leader_epoch: The leader epoch of the last record before ``end``.
        **where: The arguments of ``OffsetOutOfRange``; ``end`` is the first offset at which the
            logs differ.
    """

    def __init__(self, message: str, *, leader_epoch: int, **where: Any) -> None:
        super().__init__(message, **where)
        self.leader_epoch = leader_epoch


class TopicGone(Kip848Error):
    """A manually assigned topic no longer exists.

    To continue, ``assign`` existing partitions. If the topic was created again with the same name,
    it is a different topic.

    Args:
        message: The text of the exception.
        topic: The topic's name.
    """

    def __init__(self, message: str, *, topic: str) -> None:
        super().__init__(message)
        self.topic = topic


class RecordUnreadable(Kip848Error, ValueError):
    """A record cannot be returned: a deserializer raised (``__cause__`` has its error), the fields
    of the record are invalid, or the bytes are damaged. Also a ``ValueError``, like Python's own
    decoding errors.

    The error has the record's content as bytes (KIP-1036), so that you can keep it, for instance in
    a dead letter topic.

    Every call for records of the partition tries the record again and raises again, without a
    request to the broker. To skip the record: ``seek((e.topic, e.partition), e.offset + 1)``.
    Damaged bytes are fetched again, at most once per second; the message has the offset of the next
    batch.

    Args:
        message: The text of the exception.
        topic: The topic of the record.
        partition: The partition of the record.
        offset: The offset of the record.
        key: The key, or ``None`` for null.
        value: The value, or ``None`` for null.
        headers: Pairs of a name and ``bytes`` (or ``None``).
        timestamp: Milliseconds since 1970, or ``None`` if the record's fields are unknown; then key
            and value are ``None`` as well, and there are no headers.
        timestamp_type: 0 for the producer's time, 1 for the broker's, ``None`` if unknown.
        data: All bytes of a record with invalid fields; otherwise ``None``.
    """

    def __init__(
        self,
        message: str,
        *,
        topic: str,
        partition: int,
        offset: int,
        key: bytes | None = None,
        value: bytes | None = None,
        headers: tuple[tuple[str, bytes | None], ...] = (),
        timestamp: int | None = None,
        timestamp_type: int | None = None,
        data: bytes | None = None,
    ) -> None:
        super().__init__(message)
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.key = key
        self.value = value
        self.headers = headers
        self.timestamp = timestamp
        self.timestamp_type = timestamp_type
        self.data = data


class BatchUnreadable(RecordUnreadable):
    """The records of a batch from ``offset`` on cannot be returned, although they are not damaged:
    the batch unpacks to more than ``max_decompressed_batch_bytes``, or this version does not know
    its codec. The batch ends before ``next_offset``.

    Every call for records of the partition raises it again. To skip the batch: ``seek((e.topic,
    e.partition), e.next_offset)``. Other partitions continue.

    Args:
        message: The text of the exception.
        topic: The topic of the batch.
        partition: The partition of the batch.
        offset: The offset of the first record that cannot be returned.
        next_offset: The offset after the batch.
    """

    def __init__(
        self, message: str, *, topic: str, partition: int, offset: int, next_offset: int
    ) -> None:
        super().__init__(message, topic=topic, partition=partition, offset=offset)
        self.next_offset = next_offset


class SchemaUnavailable(Kip848Error):
    """A schema registry did not return or accept a schema: it is down or slow, does not know the
    schema, or returned an invalid one. ``__cause__`` is the error of the registry's client.

    A consumer raises ``RecordUnreadable`` with this error as its ``__cause__``. The position stays
    at the record, and the next call for records asks the registry again. ``Producer.send`` raises
    this error itself; nothing was sent.

    Args:
        message: The text of the exception.
        retriable: Whether a retry may succeed later.
    """

    def __init__(self, message: str, *, retriable: bool) -> None:
        super().__init__(message)
        self.retriable = retriable


class RecordTooLarge(Kip848Error, ValueError):
    """A record is larger than a request can be (``max_request_size``) or than the whole send buffer
    (``buffer_memory``). Nothing was sent.

    Raise the limit, and the topic's ``max.message.bytes`` with it, or send less in one record.
    """


class TransactionAborted(Kip848Error):
    """A transaction cannot be committed, and nothing of it is: readers with
    ``isolation_level="read_committed"`` never see any of its records.

    Abort the transaction, or leave its block, which aborts it. Then seek the input partitions back
    to their committed offsets, and begin the next transaction with the same producer.

    Args:
        message: The text of the exception.
        cause: The first error of the transaction (also ``__cause__``), for instance a refused
            record or a ``CommitFailed``.
    """

    def __init__(self, message: str, *, cause: BaseException | None = None) -> None:
        super().__init__(message)
        self.cause = cause
        self.__cause__ = cause


class TransactionTimedOut(TransactionAborted):
    """The coordinator ended the transaction before the producer did: it was open for longer than
    ``transaction_timeout_ms``, or an administrator aborted it.

    Continue as after ``TransactionAborted``. If it happens again, commit more often or raise the
    timeout.
    """


class CommitInDoubt(Kip848Error):
    """A commit was sent and not answered in time, so it is unknown whether the transaction is
    committed.

    Call ``Producer.commit_transaction`` again until it returns or raises another error: it retries
    the same commit. If ``cause`` is a ``ProducerFailed``, every later call raises it, and the
    producer cannot find out the outcome. Then create a new producer with the same transactional id,
    and read the committed offsets before you continue.

    Args:
        message: The text of the exception.
        cause: The reason (also ``__cause__``).
    """

    def __init__(self, message: str, *, cause: BaseException | None = None) -> None:
        super().__init__(message)
        self.cause = cause
        self.__cause__ = cause


class ProducerFailed(Kip848Error):
    """This producer cannot be used any more; every later call raises this error again.

    ``stop`` the producer, fix the cause if the message names one, and create a new producer with
    the same transactional id. Then seek the input partitions back to the committed offsets, read
    from the brokers. If ``maybe_committed`` is true, these offsets show whether the last
    transaction was committed.

    Args:
        message: The text of the exception.
        cause: The first error (also ``__cause__``).
        maybe_committed: True if the commit of the last transaction was sent and its outcome is
            unknown. Otherwise nothing of that transaction is committed.
    """

    def __init__(
        self, message: str, *, cause: BaseException | None = None, maybe_committed: bool = False
    ) -> None:
        super().__init__(message)
        self.cause = cause
        self.__cause__ = cause
        self.maybe_committed = maybe_committed


class ProducerFenced(ProducerFailed):
    """Another producer with the same transactional id has taken over. The open transaction of this
    one is aborted, unless ``maybe_committed``.

    Stop this instance. If it is the one that should run, create a new producer here, which fences
    the other one.
    """


class TransportError(Kip848Error):
    """A failure of the network, not of the protocol."""


class BootstrapFailed(TransportError):
    """No bootstrap server answered. The message lists each one with the reason."""


class CoordinatorUnavailable(TransportError):
    """No group coordinator could be found or reached within the time allowed."""


class RequestTimedOut(TransportError):
    """A broker did not answer a request in time. It may or may not have processed the request."""


class DeliveryTimedOut(TransportError):
    """Records were not acknowledged within ``delivery_timeout_ms``. The message has the reason.

    Args:
        message: The text of the exception.
        maybe_written: True if a broker may have the records, so sending them again may write them
            twice.
        last_code: The last error code that a broker returned for their partition, or ``None``.
        cause: The brokers' error for the topic (also ``__cause__``) if the topic did not exist at
            the end of the timeout, otherwise ``None``.
    """

    def __init__(
        self,
        message: str,
        *,
        maybe_written: bool,
        cause: BrokerError | None = None,
        last_code: int | None = None,
    ) -> None:
        super().__init__(message)
        self.maybe_written = maybe_written
        self.last_code = last_code
        self.cause = cause
        self.__cause__ = cause


class CallbackError(Kip848Error):
    """A rebalance listener raised, or did not return in time. ``__cause__`` is its error."""


class ConsumerClosed(Kip848Error):
    """The consumer is closed; create a new one."""


class ConsumerNotStarted(ConsumerClosed, LocalProtocolError):
    """The consumer is not started: call ``start``, or use ``async with``."""


class NotAssigned(Kip848Error):
    """The partition is not assigned to this consumer at the moment."""


class AdminFailed(Kip848Error):
    """Some parts of an admin request were refused or not answered in time.

    The parts in ``errors`` can be requested again. ``__cause__`` is the first error.

    Args:
        message: The text of the exception.
        errors: The error of each failed group, topic or partition.
        done: The results of the others, which have taken effect.
    """

    def __init__(
        self, message: str, *, errors: Mapping[Any, Kip848Error], done: Mapping[Any, Any]
    ) -> None:
        super().__init__(message)
        self.errors = dict(errors)
        self.done = dict(done)
        self.__cause__ = next(iter(self.errors.values()), None)


def not_assigned(topic: str, partition: int) -> NotAssigned:
    """The error for a partition that is not assigned to this consumer."""
    return NotAssigned(
        f"{topic}-{partition} is not assigned to this consumer; assignment() returns its "
        "partitions, wait_assigned() waits for some, a rebalance listener is called for changes"
    )


_BY_CODE: Final[dict[int, type[BrokerError]]] = {
    ErrorCode.INVALID_GROUP_ID: InvalidGroupId,
    ErrorCode.UNKNOWN_MEMBER_ID: UnknownMemberId,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: TopicAuthorizationFailed,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: GroupAuthorizationFailed,
    ErrorCode.UNSUPPORTED_VERSION: ProtocolUnsupported,
    ErrorCode.INVALID_REQUEST: InvalidRequest,
    ErrorCode.GROUP_ID_NOT_FOUND: GroupIdNotFound,
    ErrorCode.GROUP_MAX_SIZE_REACHED: GroupMaxSizeReached,
    ErrorCode.FENCED_INSTANCE_ID: FencedInstanceId,
    ErrorCode.FENCED_MEMBER_EPOCH: FencedMemberEpoch,
    ErrorCode.UNRELEASED_INSTANCE_ID: UnreleasedInstanceId,
    ErrorCode.UNSUPPORTED_ASSIGNOR: UnsupportedAssignor,
    ErrorCode.STALE_MEMBER_EPOCH: StaleMemberEpoch,
    ErrorCode.INVALID_REGULAR_EXPRESSION: InvalidRegularExpression,
}


def broker_error(
    code: int,
    name: str,
    broker_message: str | None = None,
    *,
    api: str = "",
    retriable: bool = False,
    hint: str = "",
) -> BrokerError:
    """Return the exception for a broker's error code; it is not raised.

    Args:
        code: Kafka's error code.
        name: Kafka's name of the code; ``UNKNOWN_ERROR_...`` if this version does not know it.
        broker_message: The broker's own error message, or ``None``.
        api: The API whose request was refused.
        retriable: Whether Kafka classifies the code as retriable.
        hint: What the caller can do about it.

    Returns:
        The subclass of ``BrokerError`` for this code if there is one. Otherwise a ``BrokerError``,
        or an ``UnknownBrokerError`` for an unknown code.
    """
    fallback = UnknownBrokerError if name.startswith("UNKNOWN_ERROR_") else BrokerError
    cls = _BY_CODE.get(code, fallback)
    return cls(code, name, broker_message, api=api, retriable=retriable, hint=hint)


def refusal(code: int, message: str | None, api: str, hint: str = "") -> BrokerError:
    """Return the exception for a broker's error code, with name and retriability from
    ``error_codes``.

    Args:
        code: Kafka's error code.
        message: The broker's own error message, or ``None``.
        api: The API whose request was refused.
        hint: What the caller can do about it.

    Returns:
        The exception, as ``broker_error`` chooses it; it is not raised.
    """
    retriable = is_retriable(code)
    return broker_error(code, error_name(code), message, api=api, retriable=retriable, hint=hint)
