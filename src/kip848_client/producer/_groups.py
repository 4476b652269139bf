"""The member and the offsets to commit with a transaction; a consumer supplies both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol, runtime_checkable

from kip848_client.core.produce import Group, OffsetToCommit
from kip848_client.core.short import short
from kip848_client.core.types import TopicId, TopicPartition
from kip848_client.errors import CommitFailed, ConfigError, NotAssigned
from kip848_client.runtime.arguments import checked_commit, checked_wire_text

__all__ = ["GroupSource", "to_commit"]

_NO_EPOCH: Final = -1
_INT32_MAX: Final = 2**31 - 1


class _Member(Protocol):
    """The fields of ``GroupMetadata``."""

    @property
    def group_id(self) -> str: ...
    @property
    def member_epoch(self) -> int: ...
    @property
    def member_id(self) -> str: ...
    @property
    def group_instance_id(self) -> str | None: ...


class _Offset(Protocol):
    @property
    def offset(self) -> int: ...
    @property
    def leader_epoch(self) -> int: ...
    @property
    def metadata(self) -> str: ...
    @property
    def topic_id(self) -> TopicId | None: ...


@runtime_checkable
class GroupSource(Protocol):
    """Supplies the offsets to commit: a ``Consumer``."""

    def offsets_for_transaction(
        self, offsets: Mapping[Any, Any] | None = None
    ) -> tuple[_Member, Mapping[TopicPartition, _Offset]]:
        """See ``Consumer.offsets_for_transaction``."""
        ...


def to_commit(
    group: object, offsets: Mapping[Any, Any] | None
) -> tuple[Group, dict[TopicPartition, OffsetToCommit]]:
    """The member and its offsets as one snapshot. Raises ``CommitFailed`` for offsets that the
    member may not commit, and ``ConfigError``."""
    if isinstance(group, GroupSource) and not isinstance(group, type):
        member, theirs = group.offsets_for_transaction(offsets)
        found = {
            tp: OffsetToCommit(each.offset, each.leader_epoch, each.metadata, each.topic_id)
            for tp, each in theirs.items()
        }
        return _named(member), found
    if offsets is None:
        raise ConfigError("say which offsets: only a Consumer knows what it has handed out")
    given = {
        tp: OffsetToCommit(offset, _NO_EPOCH, text)
        for tp, (offset, text) in checked_commit(offsets).items()
    }
    if isinstance(group, str):
        if not checked_wire_text(group, "the name of a group"):
            raise ConfigError("a group has a name")
        return Group(group, -1, "", None), given
    names = ("group_id", "member_epoch", "member_id", "group_instance_id")
    if not all(hasattr(group, name) for name in names):
        raise ConfigError(f"group is a Consumer, a GroupMetadata or a str, not {short(group)}")
    told: Any = group
    named = _named(told)
    if named.member_epoch < 0:
        why = NotAssigned(
            f"the consumer is not a member of group {named.group_id!r}: wait until it has joined, "
            "and take its group_metadata() together with the offsets"
        )
        raise CommitFailed(f"not committed: {why}", offsets=given, cause=why) from why
    return named, given


def _named(member: _Member) -> Group:
    instance_id = member.group_instance_id
    if instance_id is not None:
        checked_wire_text(instance_id, "group_instance_id")
    return Group(
        checked_wire_text(member.group_id, "group_id"),
        _checked_epoch(member.member_epoch),
        checked_wire_text(member.member_id, "member_id"),
        instance_id,
    )


def _checked_epoch(epoch: object) -> int:
    if isinstance(epoch, int) and _NO_EPOCH <= epoch <= _INT32_MAX:
        return epoch
    raise ConfigError(f"member_epoch is an int from -1 to {_INT32_MAX}, not {short(epoch)}")
