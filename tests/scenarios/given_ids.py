"""The ids that a real broker made up, so that the bundled coordinator can be given the same.

Some results follow the hash order of ids: which partitions move, the order of records. Topic ids
are chosen when a topic is created, member ids when JoinGroup carries none.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kip848_client.core.types import TopicId
from kip848_client.core.wire.messages.classic_group import JoinGroupRequest

__all__ = ["GivenIds", "asks_for_an_id", "uuid_of"]

_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
_BASE64_LENGTH: Final = 22


@dataclass(slots=True)
class GivenIds:
    """In order of creation. A member id is None when no answer ever told it."""

    topics: Sequence[TopicId] = ()
    members: Sequence[str | None] = ()
    taken: int = field(default=0, init=False)

    def next_member(self) -> bytes | None:
        """The random part of the next member id."""
        self.taken += 1
        found = self.members[self.taken - 1] if self.taken <= len(self.members) else None
        return None if found is None else uuid_of(found)


def asks_for_an_id(message: Any) -> bool:
    """Whether a request makes the coordinator choose a member id."""
    return isinstance(message, JoinGroupRequest) and not message.member_id


def uuid_of(member_id: str) -> bytes | None:
    """The UUID in a member id: ``client-id-`` and 36 characters, or base64 on its own."""
    text = _UUID.search(member_id)
    if text is not None:
        return bytes.fromhex(text[0].replace("-", ""))
    if len(member_id) != _BASE64_LENGTH:
        return None
    return base64.urlsafe_b64decode(member_id + "==")
