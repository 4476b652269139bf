"""Who is told of a query's progress, and how, without Spark."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from kip848_client.spark.control import _listening
from kip848_client.spark.control._listening import listen


class Listener:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.news = threading.Condition()

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802  # Spark's name
        with self.news:
            self.heard.append(event.progress.json)
            self.news.notify_all()

    def wait_for(self, count: int) -> list[str]:
        with self.news:
            assert self.news.wait_for(lambda: len(self.heard) >= count, 20)
            return self.heard


class Query:
    """A query of Spark Connect that is as far as ``progress`` says."""

    id = "5f6e"

    def __init__(self) -> None:
        self.progress: Any = None
        self.isActive = True
        self.asked = threading.Event()

    @property
    def lastProgress(self) -> Any:  # noqa: N802  # Spark's name
        self.asked.set()
        if isinstance(self.progress, Exception):
            raise self.progress
        return None if self.progress is None else SimpleNamespace(json=self.progress)


class _Session:
    """Of Spark Connect. Whoever asks it for ``streams`` gets an ``AttributeError``."""


_Session.__module__ = "pyspark.sql.connect.session"


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_listening, "_ASK_S", 0.001)


def _begin(query: Query, listener: Listener) -> Any:
    said: list[Any] = [_Session(), query, listener]
    return listen(*said)


def test_on_connect_the_query_is_asked_and_no_listener_is_added() -> None:
    query, listener = Query(), Listener()
    end = _begin(query, listener)
    query.asked.wait(20)
    query.progress = "one"
    assert listener.wait_for(1) == ["one"]
    query.progress = "two"
    assert listener.wait_for(2) == ["one", "two"], "each once"
    end()
    query.asked.clear()
    end()
    assert not query.asked.is_set(), "it is asked no more"


def test_a_query_that_has_ended_is_asked_once_more() -> None:
    query, listener = Query(), Listener()
    query.isActive = False
    query.progress = "the last one"
    end = _begin(query, listener)
    assert listener.wait_for(1) == ["the last one"]
    end()
    assert listener.heard == ["the last one"]


def test_a_server_that_is_gone_is_told_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    query, listener = Query(), Listener()
    query.progress = ValueError("gone")
    end = _begin(query, listener)
    query.asked.wait(20)
    for thread in threading.enumerate():
        if thread.name == "kip848-progress":
            thread.join(20)
    end()
    assert "the progress of query 5f6e can no longer be read: gone" in caplog.text
