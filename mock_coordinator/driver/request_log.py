"""The requests that a broker received last, for tests."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from typing import Final

from kip848_client.core.wire import APIS
from kip848_client.core.wire._fields import Message
from kip848_client.core.wire.messages.produce import ProduceRequest
from mock_coordinator.core.inputs import RequestReceived

__all__ = ["LoggedRequest", "RequestLog"]

_LOG_BYTES: Final = 16_000_000
"""How many bytes of frames the log keeps; in memory they are up to twenty times that."""


@dataclass(frozen=True, slots=True)
class LoggedRequest:
    """One request that the broker received, for tests that check what a client sends.

    Produce requests are logged without their records: those are in the log of their partition, and
    ten thousand requests of a megabyte each would take too much memory.

    Attributes:
        at_ms: When the broker received it, in milliseconds since 1970 by the broker's clock.
        connection: The number of the connection, counted from 1 by the broker.
        correlation: The correlation id that the client chose.
        client_id: The client id in the request's header.
        api: Kafka's name of the API, for example ``"Fetch"``.
        version: The version of the API.
        request: The decoded request.
    """

    at_ms: int
    connection: int
    correlation: int
    client_id: str | None
    api: str
    version: int
    request: Message


class RequestLog:
    """The newest ``size`` requests in ``requests``, or fewer if they are long. 0 logs nothing."""

    def __init__(self, size: int) -> None:
        self.requests: Final[deque[LoggedRequest]] = deque(maxlen=size)
        self._sizes: Final[deque[int]] = deque(maxlen=size)
        self._total_bytes = 0

    def add(self, now_ms: int, event: RequestReceived) -> None:
        """Log a request, and drop the oldest ones beyond the limits."""
        if not self.requests.maxlen:
            return
        self._drop_oldest(event)
        self.requests.append(
            LoggedRequest(
                now_ms,
                event.connection,
                event.correlation,
                event.client.client_id,
                APIS[type(event.request).API_KEY].name,
                event.version,
                _without_records(event.request),
            )
        )

    def _drop_oldest(self, event: RequestReceived) -> None:
        """Their number is limited, and so are their bytes."""
        sizes = self._sizes
        size = 0 if isinstance(event.request, ProduceRequest) else event.size_bytes
        if not self.requests:  # a test has cleared it
            sizes.clear()
            self._total_bytes = 0
        self._total_bytes += size
        while sizes and (len(sizes) == sizes.maxlen or self._total_bytes > _LOG_BYTES):
            self._total_bytes -= sizes.popleft()
            self.requests.popleft()
        sizes.append(size)


def _without_records(request: Message) -> Message:
    if not isinstance(request, ProduceRequest):
        return request
    topics = tuple(
        replace(topic, partition_data=tuple(replace(p, records=None) for p in topic.partition_data))
        for topic in request.topic_data
    )
    return replace(request, topic_data=topics)
