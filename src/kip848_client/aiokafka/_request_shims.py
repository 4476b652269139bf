"""Our requests in the shape of aiokafka's, for code between a client and its broker.

A program, a test or an instrumentation may replace or wrap ``send`` of aiokafka's client. What goes
through there must look like aiokafka's requests and responses: a Fetch request has ``topics``, its
response has rows by partition that can be read and changed. The rows are built on first access; a
response that was not accessed is passed on unchanged.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from aiokafka.protocol.fetch import FetchRequest as TheirFetchRequest
from aiokafka.protocol.fetch import FetchResponse_v11
from aiokafka.protocol.produce import ProduceRequest as TheirProduceRequest
from aiokafka.protocol.produce import ProduceResponse_v8

from kip848_client.core.ports import TopicView
from kip848_client.core.types import ZERO_TOPIC_ID, TopicId
from kip848_client.core.wire import request_api
from kip848_client.core.wire.messages.fetch import (
    FetchRequest,
    FetchResponse,
    FetchResponseAbortedTransaction,
    FetchResponseFetchableTopicResponse,
    FetchResponsePartitionData,
)
from kip848_client.core.wire.messages.produce import (
    ProduceRequest,
    ProduceResponse,
    ProduceResponsePartitionProduceResponse,
    ProduceResponseTopicProduceResponse,
)
from kip848_client.error_codes import ErrorCode
from kip848_client.errors import Kip848Error, RemoteProtocolError, refusal

__all__ = ["FetchShim", "ProduceShim", "RequestShim"]

Rows = list[tuple[str, list[tuple[Any, ...]]]]
"""Topics and their partitions, in aiokafka's form."""

_NONE: Final = object()
_NO_OFFSET: Final = -1
_WITH_STABLE: Final = 4
_WITH_START: Final = 5
_WITH_REPLICA: Final = 11
_WITH_TIME: Final = 2
_WITH_MESSAGE: Final = 8


class RequestShim:
    """A request on its way through aiokafka's methods. ``instead`` translates an error of ours to
    the one that those methods raise, whose ``__cause__`` is ours."""

    API_KEY: int

    def __init__(
        self,
        request: Any,
        send: Callable[[], Awaitable[Any]],
        instead: Callable[[Kip848Error], Exception],
    ) -> None:
        self.request = request
        self._send = send
        self._instead = instead
        self._shown: Any = _NONE
        self.returned: Any = _NONE
        """The response that the sending method returned."""
        self.failures: Final[list[Kip848Error]] = []
        """The errors that our connections have raised."""
        self._name_it()

    def __repr__(self) -> str:
        return f"<{self.request!r}>"

    async def send(self) -> Any:
        """Send it. Returns the response in aiokafka's shape; raises aiokafka's errors."""
        try:
            answer = await self._send()
        except Kip848Error as err:
            self.failures.append(err)
            raise self._instead(err) from err
        self._shown = self._show(answer)
        return self._shown

    def understood(self) -> Any:
        """The response in our form; other code may have changed or made it. Raises ``BrokerError``
        for a response that only has an error, ``RemoteProtocolError`` for an invalid one."""
        returned = self.returned
        if returned is not self._shown or returned is _NONE:
            return self._read(returned)
        return self._unshown(returned)

    # -- of a kind of requests -------------------------------------------------------------------

    def _name_it(self) -> None:
        vars(self)["API_KEY"] = request_api(self.request).key

    def _show(self, answer: Any) -> Any:
        return answer

    def _unshown(self, shown: Any) -> Any:
        return shown

    def _read(self, returned: Any) -> Any:
        api = request_api(self.request)
        if isinstance(returned, api.response):
            return returned
        code = getattr(returned, "error_code", None)
        if isinstance(code, int) and code != ErrorCode.NONE:
            raise refusal(code, None, api.name)
        what = "nothing" if returned is _NONE else repr(returned)
        raise RemoteProtocolError(
            f"{api.name}: a replaced method of aiokafka's returned {what}, which is not a valid "
            "response"
        )


class FetchShim(RequestShim, TheirFetchRequest):  # type: ignore[misc]  # aiokafka has no types
    """Fetch. ``names`` maps topic names to ids and back."""

    request: FetchRequest
    API_KEY = TheirFetchRequest.API_KEY

    def __init__(
        self,
        request: FetchRequest,
        send: Callable[[], Awaitable[Any]],
        instead: Callable[[Kip848Error], Exception],
        names: TopicView,
    ) -> None:
        self._names = names
        super().__init__(request, send, instead)

    def _name_it(self) -> None:
        asked = self.request
        self._max_wait_ms = asked.max_wait_ms
        self._min_bytes = asked.min_bytes
        self._max_bytes = asked.max_bytes
        self._isolation_level = asked.isolation_level
        self._rack_id = asked.rack_id

    @property
    def topics(self) -> Rows:
        """The requested partitions: (partition, offset, bytes) by topic. In a fetch session
        (KIP-227), only changes since the last request."""
        return [
            (
                _name(self._names, topic.topic_id),
                [(p.partition, p.fetch_offset, p.partition_max_bytes) for p in topic.partitions],
            )
            for topic in self.request.topics
        ]

    _topics = topics

    def _show(self, answer: FetchResponse) -> Any:
        return FetchResponseShim(answer, self._names)

    def _unshown(self, shown: Any) -> FetchResponse:
        ours: FetchResponse = shown.ours if shown.is_untouched else self._read(shown)
        return ours

    def _read(self, returned: Any) -> Any:
        rows = getattr(returned, "topics", None)
        if not isinstance(rows, list):
            return super()._read(returned)
        was: FetchResponse | None = getattr(self._shown, "ours", None)
        before = {
            (topic.topic_id, each.partition_index): each
            for topic in (() if was is None else was.responses)
            for each in topic.partitions
        }
        version: int = returned.API_VERSION
        found: list[FetchResponseFetchableTopicResponse] = []
        topics: Rows = rows
        for name, partitions in topics:
            topic_id = _id(self._names, name)
            told = tuple(
                _fetched(row, version, before.get((topic_id, row[0]))) for row in partitions
            )
            found.append(
                FetchResponseFetchableTopicResponse(topic="", topic_id=topic_id, partitions=told)
            )
        return FetchResponse(
            throttle_time_ms=getattr(returned, "throttle_time_ms", 0),
            error_code=getattr(returned, "error_code", 0),
            session_id=getattr(returned, "session_id", self.request.session_id),
            responses=tuple(found),
            node_endpoints=() if was is None else was.node_endpoints,
        )


class FetchResponseShim(FetchResponse_v11):  # type: ignore[misc]  # aiokafka has no types
    """Our response to Fetch in aiokafka's shape. The rows are built on first access."""

    def __init__(self, answer: FetchResponse, names: TopicView) -> None:
        self.ours = answer
        self._names = names
        self.throttle_time_ms = answer.throttle_time_ms
        self.error_code = answer.error_code
        self.session_id = answer.session_id

    @property
    def is_untouched(self) -> bool:
        """Whether the rows were not accessed."""
        return "topics" not in self.__dict__

    def __getattr__(self, name: str) -> Any:
        if name != "topics":
            raise AttributeError(name)
        made = [
            (_name(self._names, topic.topic_id), [_fetch_row(each) for each in topic.partitions])
            for topic in self.ours.responses
        ]
        self.topics = made
        return made

    def __repr__(self) -> str:
        return f"<{self.ours!r}>"

    def get_item(self, name: str) -> Any:
        """By the schema's names."""
        return getattr(self, name)


def _fetch_row(part: FetchResponsePartitionData) -> tuple[Any, ...]:
    aborted = [(each.producer_id, each.first_offset) for each in part.aborted_transactions or ()]
    return (
        part.partition_index,
        part.error_code,
        part.high_watermark,
        part.last_stable_offset,
        part.log_start_offset,
        aborted,
        part.preferred_read_replica,
        part.records,
    )


def _fetched(
    row: tuple[Any, ...], version: int, before: FetchResponsePartitionData | None
) -> FetchResponsePartitionData:
    """Convert a row of aiokafka's; ``before`` has the fields that rows lack."""
    if before is None:
        before = FetchResponsePartitionData(
            partition_index=row[0],
            error_code=ErrorCode.NONE,
            high_watermark=_NO_OFFSET,
            aborted_transactions=None,
            records=None,
        )
    told: dict[str, Any] = {}
    if version >= _WITH_STABLE:
        told["last_stable_offset"] = row[3]
        aborted: Iterable[tuple[int, int]] = row[5 if version >= _WITH_START else 4] or ()
        told["aborted_transactions"] = tuple(
            FetchResponseAbortedTransaction(producer_id=number, first_offset=offset)
            for number, offset in aborted
        )
    if version >= _WITH_START:
        told["log_start_offset"] = row[4]
    if version >= _WITH_REPLICA:
        told["preferred_read_replica"] = row[6]
    return replace(before, error_code=row[1], high_watermark=row[2], records=row[-1], **told)


class ProduceShim(RequestShim, TheirProduceRequest):  # type: ignore[misc]  # aiokafka has no types
    """Produce."""

    request: ProduceRequest
    API_KEY = TheirProduceRequest.API_KEY

    def _name_it(self) -> None:
        self._transactional_id = self.request.transactional_id
        self._required_acks = self.request.acks
        self._timeout = self.request.timeout_ms

    @property
    def topics(self) -> Rows:
        """The batches: (partition, bytes) by topic."""
        return [
            (topic.name, [(each.index, each.records) for each in topic.partition_data])
            for topic in self.request.topic_data
        ]

    _topics = topics

    @property
    def ids(self) -> Mapping[str, bytes]:
        """The known ids of the topics."""
        return {topic.name: topic.topic_id for topic in self.request.topic_data}

    def refused(self, code: int) -> ProduceResponse:
        """A response that refuses all partitions."""
        return ProduceResponse(
            throttle_time_ms=0,
            responses=tuple(
                ProduceResponseTopicProduceResponse(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partition_responses=tuple(
                        _produced((each.index, code, _NO_OFFSET), 0)
                        for each in topic.partition_data
                    ),
                )
                for topic in self.request.topic_data
            ),
        )

    def _show(self, answer: ProduceResponse | None) -> Any:
        names = {topic_id: name for name, topic_id in self.ids.items()}
        return None if answer is None else ProduceResponseShim(answer, names)

    def _unshown(self, shown: Any) -> Any:
        if shown is None or shown.is_untouched:
            return None if shown is None else shown.ours
        return self._read(shown)

    def _read(self, returned: Any) -> Any:
        rows = getattr(returned, "topics", None)
        if returned is None and self.request.acks == 0:
            return None
        if not isinstance(rows, list):
            return super()._read(returned)
        version: int = getattr(returned, "API_VERSION", 0)
        ids = self.ids
        topics: Rows = rows
        was: ProduceResponse | None = getattr(self._shown, "ours", None)
        return ProduceResponse(
            throttle_time_ms=getattr(returned, "throttle_time_ms", None) or 0,
            responses=tuple(
                ProduceResponseTopicProduceResponse(
                    name=name,
                    topic_id=ids.get(name, ZERO_TOPIC_ID),
                    partition_responses=tuple(_produced(row, version) for row in partitions),
                )
                for name, partitions in topics
            ),
            node_endpoints=() if was is None else was.node_endpoints,
        )


class ProduceResponseShim(ProduceResponse_v8):  # type: ignore[misc]  # aiokafka has no types
    """Our response to Produce in aiokafka's shape. The rows are built on first access."""

    def __init__(self, answer: ProduceResponse, names: Mapping[bytes, str]) -> None:
        self.ours = answer
        self._names = names
        self.throttle_time_ms = answer.throttle_time_ms

    is_untouched = FetchResponseShim.is_untouched
    __repr__ = FetchResponseShim.__repr__
    get_item = FetchResponseShim.get_item

    def __getattr__(self, name: str) -> Any:
        if name != "topics":
            raise AttributeError(name)
        made = [
            (
                topic.name or self._names.get(topic.topic_id, ""),
                [_produce_row(each) for each in topic.partition_responses],
            )
            for topic in self.ours.responses
        ]
        self.topics = made
        return made


def _produce_row(part: ProduceResponsePartitionProduceResponse) -> tuple[Any, ...]:
    errors = [(each.batch_index, each.batch_index_error_message) for each in part.record_errors]
    return (
        part.index,
        part.error_code,
        part.base_offset,
        part.log_append_time_ms,
        part.log_start_offset,
        errors,
        part.error_message,
    )


def _produced(row: tuple[Any, ...], version: int) -> ProduceResponsePartitionProduceResponse:
    return ProduceResponsePartitionProduceResponse(
        index=row[0],
        error_code=row[1],
        base_offset=row[2],
        log_append_time_ms=row[3] if version >= _WITH_TIME else _NO_OFFSET,
        log_start_offset=row[4] if version >= _WITH_START else _NO_OFFSET,
        record_errors=(),
        error_message=row[6] if version >= _WITH_MESSAGE else None,
    )


def _name(names: TopicView, topic_id: bytes) -> str:
    return names.name_of(TopicId(topic_id)) or ""


def _id(names: TopicView, name: str) -> bytes:
    return names.id_of(name) or ZERO_TOPIC_ID
