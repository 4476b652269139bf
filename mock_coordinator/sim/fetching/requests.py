"""What the fetch core asks of its driver, over the simulated network: each is sent once, each
ending is one event. The messages are made and read by what the consumer uses."""

from __future__ import annotations

from collections.abc import Callable

from kip848_client.core.fetch import (
    CloseSession,
    Event,
    FetchAnswered,
    FetchLost,
    ListOffsets,
    OffsetsListed,
    OffsetsNotListed,
    SendFetch,
)
from kip848_client.core.fetch._wire import (
    FETCH_VERSIONS,
    closing_request,
    fetch_answer,
    fetch_request,
    list_offsets_request,
    list_offsets_versions,
    listed_offsets,
)
from kip848_client.core.member import LossReason
from mock_coordinator.sim.client_connection import Answer
from mock_coordinator.sim.node_requests import NodeRequests, Wires

__all__ = ["FetchRequests"]


class FetchRequests(NodeRequests):
    """Sends what the core asks for. ``feed`` takes the events, ``enter`` lets something happen as
    soon as the process runs."""

    def __init__(
        self,
        wires: Wires,
        feed: Callable[[Event], None],
        enter: Callable[[Callable[[], None]], None],
    ) -> None:
        super().__init__(wires, feed, enter)
        self._feed = feed
        self._fetching = self.own_connections()

    def fetch(self, command: SendFetch) -> None:
        """Fetch, on a connection of its own."""

        def done(answer: Answer) -> None:
            if isinstance(answer, LossReason):
                sent = answer is not LossReason.NOT_SENT
                self._feed(FetchLost(command.fetch, answer.value, sent))
            else:
                self._feed(FetchAnswered(command.fetch, fetch_answer(answer)))

        self.connection(self._fetching, command.node).call(
            fetch_request(command.intent),
            self.version("Fetch", FETCH_VERSIONS),
            command.timeout_ms,
            lambda answer: self.enter(lambda: done(answer)),
            repeats=True,
        )

    def close_session(self, command: CloseSession) -> None:
        """Fetch with the last epoch."""
        self.connection(self.asking, command.node).call(
            closing_request(command),
            self.version("Fetch", FETCH_VERSIONS),
            self.wires.request_timeout_ms,
            _nothing,
        )

    def list_offsets(self, command: ListOffsets) -> None:
        """ListOffsets, to a leader."""

        def done(answer: Answer) -> None:
            if isinstance(answer, LossReason):
                self._feed(OffsetsNotListed(command.query, answer.value))
            else:
                rows = listed_offsets(command, answer)
                self._feed(OffsetsListed(command.query, rows))

        self.connection(self.asking, command.node).call(
            list_offsets_request(command, self.wires.request_timeout_ms),
            self.version("ListOffsets", list_offsets_versions(command)),
            self.wires.request_timeout_ms,
            lambda answer: self.enter(lambda: done(answer)),
        )


def _nothing(_answer: Answer) -> None:
    """Its answer is not needed."""
