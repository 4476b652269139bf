"""A query and the control channel of its source, without Spark."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kip848_client.errors import TransportError
from kip848_client.spark import QueryControl, _channel
from kip848_client.spark._channel import ControlServer
from kip848_client.spark._loop import LoopThread
from kip848_client.spark.control import _query_control
from kip848_client.spark.source.core._manifest import Manifest


class _Source:
    """The other end of the channel. It notes what it is asked."""

    def __init__(self, path: Path) -> None:
        self.asked: list[dict[str, Any]] = []
        self.loop = LoopThread("control")
        self.server = ControlServer(str(path), self._answer)

    async def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        self.asked.append(request)
        return {"batch": None}

    def start(self) -> None:
        self.loop.call(self.server.start(), 5_000)


@pytest.fixture
def source(tmp_path: Path) -> Iterator[_Source]:
    found = _Source(tmp_path / "ctl")
    yield found
    found.loop.call(found.server.stop(), 5_000)
    found.loop.close()


def _begun(path: Path, *, is_active: bool = True) -> tuple[QueryControl, Any]:
    streams = SimpleNamespace(addListener=lambda _: None, removeListener=lambda _: None)
    spark: Any = SimpleNamespace(streams=streams)
    query: Any = SimpleNamespace(id="q", isActive=is_active, stopped=0)

    def stop() -> None:
        query.stopped += 1

    query.stop = stop
    return QueryControl(spark, query, str(path / "ctl")), query


def _progress(end: str, query_id: str = "q") -> Any:
    sources = [SimpleNamespace(endOffset=end)]
    return SimpleNamespace(progress=SimpleNamespace(id=query_id, sources=sources))


def test_a_source_that_listens_later_is_waited_for(
    tmp_path: Path, source: _Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    control, query = _begun(tmp_path)
    failures: list[TransportError] = []
    ask = _channel.ask

    def noted(*given: Any) -> Any:
        try:
            return ask(*given)
        except TransportError as err:
            failures.append(err)
            if len(failures) == 1:
                source.start()
            raise

    monkeypatch.setattr(_query_control, "ask", noted)
    assert control.status() == {"batch": None}
    assert len(failures) == 1
    control.stop()
    assert source.asked == [{"status": True}, {"drain": True}]
    assert query.stopped == 1


def test_the_source_of_a_query_that_has_ended_is_not_waited_for(tmp_path: Path) -> None:
    control, query = _begun(tmp_path, is_active=False)
    with pytest.raises(TransportError):
        control.stop()
    assert query.stopped == 0


def test_a_batch_that_the_source_did_not_hear_of_harms_nothing(
    tmp_path: Path, source: _Source, caplog: pytest.LogCaptureFixture
) -> None:
    control, _ = _begun(tmp_path)
    first, second = Manifest(1).to_json(), Manifest(2).to_json()
    with caplog.at_level(logging.INFO, "kip848_client.spark"):
        control.onQueryProgress(_progress(json.dumps(first)))
    assert "the source learns of a batch only at the next one" in caplog.text
    source.start()
    control.onQueryProgress(_progress(json.dumps(second)))
    control.onQueryProgress(_progress(json.dumps(first), query_id="another"))
    control.onQueryProgress(_progress('{"a": {"0": 5}}'))  # another source of the query
    assert source.asked == [{"done": second}]
