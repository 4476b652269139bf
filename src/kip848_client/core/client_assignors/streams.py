"""The messages between Kafka Streams members and their assignor (KIP-848, informative part), for
custom assignors.

The KIP defines the fields and their meaning, but no format; the bytes here are in Kafka's flexible
format, version 0. The versions, reasons and errors of the protocol are not part of them.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple
from uuid import UUID

from kip848_client.core.empty import EMPTY
from kip848_client.core.types import TopicPartition
from kip848_client.core.wire import decode, encode
from kip848_client.core.wire._fields import array, data, int32, int64, string
from kip848_client.core.wire._fields import uuid as uuid_field

__all__ = [
    "AssignmentError",
    "MemberReason",
    "StreamsAssignmentMetadata",
    "StreamsMemberMetadata",
    "TaskId",
]

_VERSION: Final = 0
_NO_HASH: Final = UUID(int=0)


class MemberReason(enum.IntEnum):
    """Why a member's metadata changed: ``AssignorMetadata.reason``."""

    NONE = 0
    SHUTDOWN = 1
    WARM_UP_READY = 2
    WARM_UP_FAILED = 3
    TOPOLOGY_CHANGED = 4


class AssignmentError(enum.IntEnum):
    """Why a group cannot be assigned: ``GroupAssignment.error``."""

    NONE = 0
    SHUTDOWN = 1
    ASSIGNMENT_ERROR = 2
    INCONSISTENT_TOPOLOGY = 3


class TaskId(NamedTuple):
    """A task of a topology.

    Attributes:
        subtopology: Number of the sub-topology.
        partition: Which partition of its topics.
    """

    subtopology: int
    partition: int


@dataclass(frozen=True, slots=True)
class StreamsMemberMetadata:
    """What a member reports.

    ``topology_hash`` and ``task_lags`` may change only with a reason other than
    ``MemberReason.NONE``.

    Attributes:
        topology_hash: Identifies the topology.
    """

    process_id: UUID
    """The process, which may have several consumers."""
    user_end_point: bytes = b""
    """The address for queries of its state."""
    client_tags: Mapping[str, str] = EMPTY
    """Its location, to place standby tasks elsewhere."""
    topology_hash: UUID = _NO_HASH
    task_lags: Mapping[TaskId, int] = EMPTY
    """The lag of each task's state, in records."""

    def encode(self) -> bytes:
        """Write it as ``AssignorMetadata.data``.

        Returns:
            The bytes.

        Raises:
            WireError: A value does not fit.
        """
        return encode(
            _MemberMetadata(
                process_id=self.process_id.bytes,
                user_end_point=self.user_end_point,
                client_tags=tuple(
                    _Tag(key=key, value=value) for key, value in sorted(self.client_tags.items())
                ),
                topology_hash=self.topology_hash.bytes,
                task_lags=tuple(
                    _Lag(subtopology=task.subtopology, partition=task.partition, lag=lag)
                    for task, lag in sorted(self.task_lags.items())
                ),
            ),
            _VERSION,
        )

    @classmethod
    def decode(cls, raw: bytes) -> StreamsMemberMetadata:
        """Read what ``encode`` wrote.

        Args:
            raw: The bytes.

        Returns:
            The metadata.

        Raises:
            WireError: The bytes are something else.
        """
        read = decode(_MemberMetadata, _VERSION, raw)
        return cls(
            UUID(bytes=read.process_id),
            read.user_end_point,
            {each.key: each.value for each in read.client_tags},
            UUID(bytes=read.topology_hash),
            {TaskId(each.subtopology, each.partition): each.lag for each in read.task_lags},
        )


Tasks = Mapping[TaskId, tuple[TopicPartition, ...]]
"""Each task with the partitions that it reads."""


@dataclass(frozen=True, slots=True)
class StreamsAssignmentMetadata:
    """What a member gets from the assignor.

    Partitions may not be there yet when a member gets their tasks: the assigned partitions decide.

    Attributes:
        active_tasks: Tasks that the member runs.
        standby_tasks: Tasks whose state it keeps up to date, with the partitions that each reads.
        warmup_tasks: Tasks whose state it builds, with the partitions that each reads.
    """

    active_tasks: tuple[TaskId, ...] = ()
    standby_tasks: Tasks = EMPTY
    warmup_tasks: Tasks = EMPTY
    partitions_by_host: Mapping[str, tuple[TopicPartition, ...]] = EMPTY
    """``host:port`` -> its partitions, for queries."""

    def encode(self) -> bytes:
        """Write it as ``MemberAssignment.data``.

        Returns:
            The bytes.

        Raises:
            WireError: A value does not fit.
        """
        return encode(
            _AssignmentMetadata(
                active_tasks=tuple(_Task(subtopology=s, partition=p) for s, p in self.active_tasks),
                standby_tasks=_reading(self.standby_tasks),
                warmup_tasks=_reading(self.warmup_tasks),
                partitions_by_host=tuple(
                    _Host(host=host, partitions=_places(partitions))
                    for host, partitions in sorted(self.partitions_by_host.items())
                ),
            ),
            _VERSION,
        )

    @classmethod
    def decode(cls, raw: bytes) -> StreamsAssignmentMetadata:
        """Read what ``encode`` wrote.

        Args:
            raw: The bytes.

        Returns:
            The metadata.

        Raises:
            WireError: The bytes are something else.
        """
        read = decode(_AssignmentMetadata, _VERSION, raw)
        return cls(
            tuple(TaskId(each.subtopology, each.partition) for each in read.active_tasks),
            _tasks(read.standby_tasks),
            _tasks(read.warmup_tasks),
            {each.host: _partitions(each.partitions) for each in read.partitions_by_host},
        )


# -- the bytes -------------------------------------------------------------------------------------


@dataclass(slots=True, kw_only=True)
class _Tag:
    key: str = string()
    value: str = string()


@dataclass(slots=True, kw_only=True)
class _Lag:
    subtopology: int = int32()
    partition: int = int32()
    lag: int = int64()


@dataclass(slots=True, kw_only=True)
class _MemberMetadata:
    API_KEY: ClassVar[int] = -1
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    process_id: bytes = uuid_field()
    user_end_point: bytes = data()
    client_tags: tuple[_Tag, ...] = array(_Tag)
    topology_hash: bytes = uuid_field()
    task_lags: tuple[_Lag, ...] = array(_Lag)


@dataclass(slots=True, kw_only=True)
class _Place:
    topic: str = string()
    partition: int = int32()


@dataclass(slots=True, kw_only=True)
class _Task:
    subtopology: int = int32()
    partition: int = int32()


@dataclass(slots=True, kw_only=True)
class _Reading:
    subtopology: int = int32()
    partition: int = int32()
    partitions: tuple[_Place, ...] = array(_Place)


@dataclass(slots=True, kw_only=True)
class _Host:
    host: str = string()
    partitions: tuple[_Place, ...] = array(_Place)


@dataclass(slots=True, kw_only=True)
class _AssignmentMetadata:
    API_KEY: ClassVar[int] = -1
    VERSIONS: ClassVar[tuple[int, int]] = (0, 0)
    FLEXIBLE: ClassVar[int] = 0

    active_tasks: tuple[_Task, ...] = array(_Task)
    standby_tasks: tuple[_Reading, ...] = array(_Reading)
    warmup_tasks: tuple[_Reading, ...] = array(_Reading)
    partitions_by_host: tuple[_Host, ...] = array(_Host)


def _places(partitions: tuple[TopicPartition, ...]) -> tuple[_Place, ...]:
    return tuple(_Place(topic=topic, partition=number) for topic, number in partitions)


def _partitions(places: tuple[_Place, ...]) -> tuple[TopicPartition, ...]:
    return tuple(TopicPartition(each.topic, each.partition) for each in places)


def _reading(tasks: Tasks) -> tuple[_Reading, ...]:
    return tuple(
        _Reading(
            subtopology=task.subtopology,
            partition=task.partition,
            partitions=_places(partitions),
        )
        for task, partitions in sorted(tasks.items())
    )


def _tasks(reading: tuple[_Reading, ...]) -> dict[TaskId, tuple[TopicPartition, ...]]:
    return {
        TaskId(each.subtopology, each.partition): _partitions(each.partitions) for each in reading
    }
