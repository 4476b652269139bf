"""Which ids a broker drew by lot for an answer, so that the other side can draw the same."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any, Final

__all__ = ["drawn", "draws"]

_HEX_ID: Final = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$")
_BASE64_CHARACTERS: Final = 22


def draws(message: Any) -> bool:
    """Whether a broker may draw ids for this request."""
    kind = type(message).__name__
    if kind == "ConsumerGroupHeartbeatRequest":
        return bool(message.member_id == "")
    if kind == "FetchRequest":
        return bool(message.session_epoch == 0)  # the id of a session: any will do
    return kind in ("JoinGroupRequest", "CreateTopicsRequest")


def drawn(message: Any, answer: Any) -> list[bytes]:
    """The ids that a broker drew for this answer, in the order in which it did."""
    if not draws(message) or answer is None:
        return []
    kind = type(message).__name__
    if kind == "CreateTopicsRequest":
        made = {each.name: each.topic_id for each in getattr(answer, "topics", ())}
        ids = [made.get(each.name, bytes(16)) for each in message.topics]
        return [each for each in ids if each != bytes(16)]
    if kind == "FetchRequest":
        return []
    member_id = getattr(answer, "member_id", None)
    if not member_id or member_id == message.member_id:
        return []
    return id_of(member_id)


def id_of(member_id: str) -> list[bytes]:
    """The random part of a member id that a broker made: Java's UUID, or Kafka's base64 form."""
    found = _HEX_ID.search(member_id)
    if found is not None:
        return [bytes.fromhex(found.group().replace("-", ""))]
    text = member_id[-_BASE64_CHARACTERS:]
    try:
        return [base64.urlsafe_b64decode(f"{text}==")]
    except (binascii.Error, ValueError):
        return []
