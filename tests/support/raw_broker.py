"""Requests to one broker whose answers are to be compared with another broker's.

Producer ids become ``P1``, ``P2``, .. in order of their first appearance, and a connection that the
broker closes is opened again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol

from tests.support.wire_connection import ConnectionLostError, Requester

__all__ = ["CLOSED", "ClosableRequester", "RawBroker"]

CLOSED: Final = "connection closed"
"""What stands for an answer that never came."""

_IDS_SINCE: Final = {"Produce": 13, "Fetch": 13, "TxnOffsetCommit": 6}


class ClosableRequester(Requester, Protocol):
    """A connection, or what behaves like one."""

    def close(self) -> None: ...


class RawBroker:
    """``topic_ids`` are the ids that topics have on this broker, by name; ``now_ms`` is the time
    that producers write into their records."""

    def __init__(
        self,
        connect: Callable[[], ClosableRequester],
        topic_ids: Mapping[str, bytes],
        now_ms: Callable[[], int] = lambda: int(time.time() * 1000),
    ) -> None:
        self._now_ms = now_ms
        self._connect = connect
        self._connection = connect()
        self._topic_ids = topic_ids
        self._labels: dict[int, str] = {}

    def close(self) -> None:
        """End the connection."""
        self._connection.close()

    def raw_request(self, message: Any, version: int) -> Any:
        """Any request; the answer, or ``None`` when the connection was closed instead."""
        return self._request(message, version)

    def label(self, producer_id: int) -> str:
        """The name of a producer id in the answers."""
        if producer_id < 0:
            return str(producer_id)
        return self._labels.setdefault(producer_id, f"P{len(self._labels) + 1}")

    def _request(self, message: Any, version: int) -> Any:
        try:
            return self._connection.request(message, version)
        except ConnectionLostError:
            self._connection.close()
            self._connection = self._connect()
            return None

    def _id(self, api: str, version: int, topic: str) -> dict[str, Any]:
        """How a request names a topic."""
        field = "topic" if api == "Fetch" else "name"
        if version < _IDS_SINCE[api]:
            return {field: topic}
        return {"topic_id": self._topic_ids.get(topic, b"\7" * 16)}

    def _name(self, answer: Any) -> str:
        name = getattr(answer, "topic", None) or getattr(answer, "name", "")
        if name:
            return str(name)
        known = {topic_id: topic for topic, topic_id in self._topic_ids.items()}
        return known.get(bytes(answer.topic_id), "unknown")
