"""How scenarios write the bytes of classic members: what they subscribe to, what they got."""

from __future__ import annotations

from kip848_client.errors import WireError
from mock_coordinator.core.groups.records.consumer_protocol import (
    read_assignment,
    subscribed_topics,
)
from tests.scenarios.notation import partitions_text, words

__all__ = ["assignment_text", "subscription_text"]

_NEWEST = 3


def subscription_text(raw: bytes) -> str:
    """``topics foo``; bytes that say none are shown as they are."""
    topics = subscribed_topics(raw)
    return f"bytes {raw.hex() or 'none'}" if topics is None else f"topics {words(topics)}"


def assignment_text(raw: bytes) -> str:
    """An assignment as members are given it: partitions, ``no bytes``, or bytes that say none."""
    if not raw:
        return "no bytes"
    try:
        version, assignment = read_assignment(raw)
    except WireError:
        return f"bytes {raw.hex()}"
    text = partitions_text({each.topic: each.partitions for each in assignment.assigned_partitions})
    data = "" if assignment.user_data is None else f", user data {assignment.user_data.hex()}"
    return f"{text}{data}" if version == _NEWEST else f"{text}{data} (version {version})"
