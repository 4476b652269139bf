"""Every exception that this package raises, as one tree.

::

    Kip848Error
    ├── ConfigError (also ValueError)      a setting is wrong; says which, and near names
    ├── WireError                          bytes could not be read or written
    │   └── UnsupportedVersion             no common version of an API
    ├── ProtocolError
    │   ├── LocalProtocolError             you asked for what this state does not allow
    │   └── RemoteProtocolError            the broker answered what the protocol does not allow
    ├── BrokerError                        the broker refused; carries code, name and its message
    │   ├── FencedMemberEpoch, UnknownMemberId, StaleMemberEpoch, FencedInstanceId,
    │   │   UnreleasedInstanceId, GroupMaxSizeReached, UnsupportedAssignor,
    │   │   InvalidRegularExpression, GroupIdNotFound, GroupAuthorizationFailed,
    │   │   TopicAuthorizationFailed, InvalidGroupId, InvalidRequest, ProtocolUnsupported
    │   └── UnknownBrokerError             a code this version does not know, kept as a number
    ├── CommitFailed                       offsets that were not committed, and why
    ├── NoOffsetForPartition               no committed offset and auto_offset_reset is "none"
    │   └── OffsetOutOfRange               the position is not in the log (any more), and as above
    │       └── LogTruncated               records that were handed out are not in the log any more
    ├── TopicGone                          a topic that was assigned by hand was deleted
    ├── RecordUnreadable                   a deserializer raised, or the bytes are damaged
    ├── SchemaUnavailable                  a schema registry has not told a schema
    ├── RecordTooLarge (also ValueError)   a record that no request could carry
    ├── TransactionAborted                 nothing of it is committed: abort, rewind, go on
    │   └── TransactionTimedOut            the coordinator ended it before the producer did
    ├── CommitInDoubt                      nobody knows yet whether it is committed: commit again
    ├── ProducerFailed                     this producer cannot go on: make a new one
    │   └── ProducerFenced                 another producer has the transactional id now
    ├── TransportError
    │   ├── BootstrapFailed                no broker of the list answered
    │   ├── CoordinatorUnavailable         no coordinator could be found or reached in time
    │   ├── RequestTimedOut                a broker did not answer one request in time
    │   └── DeliveryTimedOut               records that no broker took, or answered for, in time
    ├── CallbackError                      a rebalance listener raised or overran its time
    ├── ConsumerClosed                     the consumer is closed
    │   └── ConsumerNotStarted             (also LocalProtocolError) it is not started yet
    ├── NotAssigned                        this partition is not assigned to this consumer
    └── AdminFailed                        some of what an admin asked for was refused
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
    """Base of everything this package raises on purpose. Can be copied and pickled, as Python's own
    errors can: what a worker process raises reaches the process that waits for it."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), self.args), vars(self)


def _again(kind: type[Exception], args: tuple[Any, ...]) -> Exception:
    """An error that says what another one said, without telling it anew what it was told."""
    return kind.__new__(kind, *args)


class ConfigError(Kip848Error, ValueError):
    """A setting is wrong. The message names the setting, the value and what is accepted."""


class WireError(Kip848Error):
    """Bytes could not be read as, or a message could not be written as, the Kafka wire format."""


class UnsupportedVersion(WireError):
    """The two sides share no version of an API. The message names both ranges."""


class ProtocolError(Kip848Error):
    """A rule of the group protocol was broken; see the two subclasses for by whom."""


class LocalProtocolError(ProtocolError):
    """You asked for something that the current state does not allow. Nothing was changed."""


class RemoteProtocolError(ProtocolError):
    """The broker answered something that the protocol does not allow.

    ``hint`` says what the caller should do next.
    """

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message if not hint else f"{message} ({hint})")
        self.hint = hint


class BrokerError(Kip848Error):
    """A broker refused a request.

    ``code`` is Kafka's error code, ``name`` its name, ``broker_message`` the broker's own words
    (or ``None``), ``api`` the request that was refused, ``retriable`` whether Kafka calls it so.
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
    our client-side ones do not go together with those of the other members."""


class InvalidRegularExpression(BrokerError):
    """INVALID_REGULAR_EXPRESSION: the broker's RE2 engine refuses the subscription pattern."""


class GroupIdNotFound(BrokerError):
    """GROUP_ID_NOT_FOUND: no group of that id, or the group is of another type."""


class GroupAuthorizationFailed(BrokerError):
    """GROUP_AUTHORIZATION_FAILED: this principal may not use the group."""


class TopicAuthorizationFailed(BrokerError):
    """TOPIC_AUTHORIZATION_FAILED: this principal may not read one of the topics."""


class InvalidGroupId(BrokerError):
    """INVALID_GROUP_ID: the group id is not acceptable."""


class InvalidRequest(BrokerError):
    """INVALID_REQUEST: the broker finds the request malformed."""


class ProtocolUnsupported(BrokerError):
    """UNSUPPORTED_VERSION: the broker does not serve the KIP-848 protocol in a version that we
    speak."""


class UnknownBrokerError(BrokerError):
    """An error code that this version of the package does not know, kept as a number."""


class CommitFailed(Kip848Error):
    """Offsets were not committed. ``offsets`` maps the partitions concerned to the offsets that
    were meant; ``cause`` is the last error. Records after the last commit will be delivered
    again."""

    def __init__(
        self, message: str, *, offsets: Mapping[Any, Any], cause: BaseException | None = None
    ) -> None:
        super().__init__(message)
        self.offsets = dict(offsets)
        self.cause = cause


class NoOffsetForPartition(Kip848Error):
    """A partition has no committed offset and ``auto_offset_reset="none"`` forbids choosing one."""


class OffsetOutOfRange(NoOffsetForPartition):
    """The position is not in the partition's log any more, or never was, and
    ``auto_offset_reset="none"`` forbids choosing another. ``start`` and ``end`` say what the log
    has (``end`` is the offset after its last record). Way out: ``seek`` between them."""

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
    """Records that were handed out are not in the partition's log any more: a broker that lacked
    them became the leader (unclean election, KIP-320). ``end`` is where the logs differ, and
    ``leader_epoch`` the epoch of the last record before it. Way out: undo what the records from
    ``end`` on have done, and ``seek`` to ``end``."""

    def __init__(self, message: str, *, leader_epoch: int, **where: Any) -> None:
        super().__init__(message, **where)
        self.leader_epoch = leader_epoch


class TopicGone(Kip848Error):
    """A topic that was assigned by hand does not exist any more. ``topic`` is its name. Way out:
    ``assign`` what is there now; a topic of the same name is another one."""

    def __init__(self, message: str, *, topic: str) -> None:
        super().__init__(message)
        self.topic = topic


class RecordUnreadable(Kip848Error, ValueError):
    """A record cannot be returned: a deserializer raised (``__cause__`` has its error), the fields
    of the record are invalid, or the bytes are damaged. Also a ``ValueError``, like Python's own
    decoding errors.

    ``topic``, ``partition`` and ``offset`` identify the record. The error has its content as bytes
    (KIP-1036), so that you can keep it, for instance in a dead letter topic:

    - ``key``, ``value``: ``bytes``, or ``None`` for a null one;
    - ``headers``: pairs of a name and ``bytes`` (or ``None``);
    - ``timestamp``: milliseconds since 1970, and ``timestamp_type``: 0 for the producer's time, 1
      for the broker's. Both are ``None`` if the fields are unknown; then key and value are
      ``None``, too, and there are no headers;
    - ``data``: all bytes of a record with invalid fields; otherwise ``None``.

    Every call for records of the partition tries the record again and raises again, without a
    request to the broker. To skip the record: ``seek((e.topic, e.partition), e.offset + 1)``.
    Damaged bytes are fetched again, at most once a second; the message has the offset of the next
    batch.
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
    """

    def __init__(
        self, message: str, *, topic: str, partition: int, offset: int, next_offset: int
    ) -> None:
        super().__init__(message, topic=topic, partition=partition, offset=offset)
        self.next_offset = next_offset


class SchemaUnavailable(Kip848Error):
    """A schema registry has not told a schema, or has not taken one: it is down or slow, it does
    not know the schema, or what it answers is none. ``retriable`` tells whether the same may go
    well later. The error of the registry's client is the ``__cause__``.

    Of a record that is read it is the ``__cause__`` of the ``RecordUnreadable``; the record stays
    the next one, and the next call for records asks the registry again. ``Producer.send`` raises it
    as it is; nothing was sent.
    """

    def __init__(self, message: str, *, retriable: bool) -> None:
        super().__init__(message)
        self.retriable = retriable


class RecordTooLarge(Kip848Error, ValueError):
    """A record is larger than a request may be (``max_request_size``), or than the whole budget of
    memory (``buffer_memory``). Nothing was sent. Way out: raise the limit, and the topic's
    ``max.message.bytes`` with it, or send less in one record."""


class TransactionAborted(Kip848Error):
    """A transaction cannot be committed. Nothing of it is, and readers with
    ``isolation_level="read_committed"`` never see any of it. ``cause`` (also ``__cause__``) is the
    first error that made it so, for instance a record that a broker refused or a ``CommitFailed``.

    Way out: abort the transaction, or leave its block, which does that; seek what was read for it
    back to the committed offsets, and begin the next one with the same producer.
    """

    def __init__(self, message: str, *, cause: BaseException | None = None) -> None:
        super().__init__(message)
        self.cause = cause
        self.__cause__ = cause


class TransactionTimedOut(TransactionAborted):
    """The coordinator ended the transaction before the producer did: it was open for longer than
    ``transaction_timeout_ms``, or an administrator aborted it. Way out: as above; commit more often
    or allow more time if it happens again."""


class CommitInDoubt(Kip848Error):
    """A commit was sent and not answered in time, so nobody knows yet whether the transaction is
    committed. ``cause`` (also ``__cause__``) is why.

    Way out: call ``Producer.commit_transaction`` (again), as often as it takes: it is the same
    commit, and tells the outcome. Unless ``cause`` is a ``ProducerFailed``, which every later call
    raises: then nothing tells it any more. Make a new producer with the same transactional id, and
    read the committed offsets back before you go on.
    """

    def __init__(self, message: str, *, cause: BaseException | None = None) -> None:
        super().__init__(message)
        self.cause = cause
        self.__cause__ = cause


class ProducerFailed(Kip848Error):
    """This producer cannot go on; every later call raises this again. ``cause`` (also
    ``__cause__``) is the first error. ``maybe_committed``: the commit of its last transaction was
    sent, and nobody knows what became of it; else nothing of that transaction is committed.

    Way out: ``stop`` the producer, mend the cause where the message names one, make a new producer
    with the same transactional id, and seek what was read back to the committed offsets. They are
    read from the brokers: where ``maybe_committed`` is true, they tell what became of the commit.
    """

    def __init__(
        self, message: str, *, cause: BaseException | None = None, maybe_committed: bool = False
    ) -> None:
        super().__init__(message)
        self.cause = cause
        self.__cause__ = cause
        self.maybe_committed = maybe_committed


class ProducerFenced(ProducerFailed):
    """Another producer with the same transactional id has taken over; what this one had open is
    aborted, unless ``maybe_committed``. Way out: stop this instance, or, if it is the one that
    should live, make a new producer here: that fences the other one."""


class TransportError(Kip848Error):
    """The network, not the protocol, was in the way."""


class BootstrapFailed(TransportError):
    """None of the bootstrap servers answered. The message lists each with its reason."""


class CoordinatorUnavailable(TransportError):
    """No group coordinator could be found or reached within the time allowed."""


class RequestTimedOut(TransportError):
    """A broker took a request and did not answer in time; it may or may not have acted on it."""


class DeliveryTimedOut(TransportError):
    """Records were not acknowledged within ``delivery_timeout_ms``; the message says what was in
    the way. ``last_code``: the error code that a broker has given last for their partition, if any.
    ``maybe_written``: a broker may have them all the same, so whoever sends them again may write
    them twice. ``cause`` (also ``__cause__``): what brokers said of the topic, if it was not there
    when the time was over."""

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
    """A rebalance listener raised, or did not return within its time. ``__cause__`` has the
    error."""


class ConsumerClosed(Kip848Error):
    """The consumer is closed; create a new one."""


class ConsumerNotStarted(ConsumerClosed, LocalProtocolError):
    """The consumer is not started: call ``start``, or use ``async with``."""


class NotAssigned(Kip848Error):
    """The partition is not assigned to this consumer at the moment."""


class AdminFailed(Kip848Error):
    """Some of what an admin asked for was refused, or not answered in time.

    ``errors`` maps each group, topic or partition concerned to its error, ``done`` the others to
    their results: what is in there has been done. ``__cause__`` is the first error. Way out: look
    at ``errors``; what is in there can be asked for again.
    """

    def __init__(
        self, message: str, *, errors: Mapping[Any, Kip848Error], done: Mapping[Any, Any]
    ) -> None:
        super().__init__(message)
        self.errors = dict(errors)
        self.done = dict(done)
        self.__cause__ = next(iter(self.errors.values()), None)


def not_assigned(topic: str, partition: int) -> NotAssigned:
    """The one error for a partition that is not ours."""
    return NotAssigned(
        f"{topic}-{partition} is not assigned to this consumer; assignment() says what is, "
        "wait_assigned() waits for the group, a listener hears of what comes and goes"
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
    """The exception for a broker's error code; never raises itself.

    A code with a class of its own gets it, a code known only by name gets ``BrokerError``, and one
    that is not known at all (``name`` starts with ``UNKNOWN_ERROR_``) gets ``UnknownBrokerError``.
    """
    fallback = UnknownBrokerError if name.startswith("UNKNOWN_ERROR_") else BrokerError
    cls = _BY_CODE.get(code, fallback)
    return cls(code, name, broker_message, api=api, retriable=retriable, hint=hint)


def refusal(code: int, message: str | None, api: str, hint: str = "") -> BrokerError:
    """The same, named and judged by Kafka's table of error codes."""
    retriable = is_retriable(code)
    return broker_error(code, error_name(code), message, api=api, retriable=retriable, hint=hint)
