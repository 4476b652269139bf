"""What the format does with options of Kafka that have no effect."""

from __future__ import annotations

import logging

import pytest
from pyspark.sql.types import BinaryType, StructType

from kip848_client.spark import _data_source
from kip848_client.spark._data_source import Kip848DataSource


def test_options_without_effect_are_logged_once_together(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_data_source, "_warned", set())
    caplog.set_level(logging.WARNING, "kip848_client.spark")
    kafka = {"kafka.bootstrap.servers": "localhost:1", "kafka.send.buffer.bytes": "1"}
    for _ in range(2):
        source = Kip848DataSource({**kafka, "subscribe": "a", "kafka.max.poll.records": "5"})
        source.reader(source.schema())
    assert len(caplog.messages) == 1
    assert "kafka.max.poll.records (maxOffsetsPerTrigger limits a batch)" in caplog.text
    assert "kafka.send.buffer.bytes (" in caplog.text
    sink = Kip848DataSource({**kafka, "topic": "a", "kafka.retries": "3"})
    sink.writer(StructType().add("value", BinaryType()), overwrite=False)
    assert len(caplog.messages) == 2
    assert "kafka.retries (delivery.timeout.ms limits retries)" in caplog.messages[1]
