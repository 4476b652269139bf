"""What a pipeline with ``engine = "jvm"`` asks of Spark's own source."""

from __future__ import annotations

from typing import Any

from kip848_client.spark.pipeline._pipeline import _by_spark


class _Reader:
    """``spark.readStream``, which notes its options."""

    def __init__(self) -> None:
        self.said: dict[str, str] = {}
        self.readStream = self

    def format(self, name: str) -> _Reader:
        assert name == "kafka"
        return self

    def options(self, **said: str) -> _Reader:
        self.said = said
        return self

    def load(self) -> _Reader:
        return self


def test_a_pattern_matches_whole_names_there_too() -> None:
    spark: Any = _Reader()
    assert _by_spark(spark, {"subscribePattern": "a|b", "startingOffsets": "earliest"}) is spark
    assert spark.said == {"subscribePattern": "^(?:a|b)$", "startingOffsets": "earliest"}
