"""Server-side assignors of the user, checked; Kafka's own need no check.

An assignor that raises, or returns nonsense, must not end the broker. Kafka does not check results;
an assignor that assigns a partition to two members would show as a group that never becomes stable,
so its result is refused here, with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from kip848_client.core.assignors import (
    NO_PARTITIONS,
    Assignment,
    Assignor,
    AssignorError,
    GroupSpec,
    Partitions,
    TopicMetadata,
    same_partitions,
)
from kip848_client.core.types import MemberId, TopicId

__all__ = ["OwnAssignor", "OwnAssignorFailed"]


class OwnAssignorFailed(AssignorError):
    """An assignor of a user's own raised, or returned what cannot be."""


class OwnAssignor:
    """Runs the assignor that it is given. Whatever that does, ``assign`` raises nothing but
    ``OwnAssignorFailed``, and returns what can be."""

    def __init__(self, assignor: Assignor) -> None:
        self._assignor: Final = assignor
        self.name: Final = assignor.name
        self.minimum_version: Final[int] = getattr(assignor, "minimum_version", 0)
        self.maximum_version: Final[int] = getattr(assignor, "maximum_version", 0)

    def assign(self, group: GroupSpec, topics: Mapping[TopicId, TopicMetadata]) -> Assignment:
        """See ``Assignor``. A member that is left out gets nothing."""
        try:
            returned: object = self._assignor.assign(group, topics)
            return _checked(returned, group, topics)
        except Exception as err:
            what = str(err) if isinstance(err, AssignorError) else f"{type(err).__name__}: {err}"
            raise OwnAssignorFailed(f"The assignor {self.name} failed: {what}") from err


def _checked(
    returned: object, group: GroupSpec, topics: Mapping[TopicId, TopicMetadata]
) -> Assignment:
    if not isinstance(returned, Assignment):
        raise AssignorError(f"it returned a {type(returned).__name__}, not an Assignment")
    given = dict(cast("Mapping[Any, Any]", returned.members))
    members: dict[MemberId, Partitions] = {}
    taken: dict[tuple[TopicId, int], MemberId] = {}
    for member_id, spec in group.members.items():
        mine = cast("Mapping[Any, Iterable[Any]]", given.pop(member_id, NO_PARTITIONS))
        listed = {topic_id: tuple(partitions) for topic_id, partitions in mine.items()}
        new = {topic_id: partitions for topic_id, partitions in listed.items() if partitions}
        for topic_id, partitions in new.items():
            if topic_id not in topics or topic_id not in spec.topic_ids:
                raise AssignorError(f"member {member_id} does not subscribe to topic {topic_id!r}")
            topic = topics[topic_id]
            for partition in partitions:
                where = f"partition {topic.name}-{partition}"
                if partition not in range(topic.partition_count):
                    raise AssignorError(f"{where} of member {member_id} does not exist")
                other = taken.get((topic_id, partition))
                if other is not None:
                    raise AssignorError(f"{where} is assigned twice, to {other} and to {member_id}")
                taken[topic_id, partition] = member_id
        members[member_id] = spec.target if same_partitions(new, spec.target) else new
    if given:
        raise AssignorError(f"unknown member {next(iter(given))!r}")
    return Assignment(members)
