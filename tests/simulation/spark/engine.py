"""Spark's engine, as a source sees it: the log of offsets, the sink, the log of commits.

``run`` is one life of the process. It stops between any two steps, so that a crash can come there;
what is in the fields outlives it, as a checkpoint and a sink do.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from random import Random

from kip848_client.spark.source.core._manifest import Manifest, Ownership
from tests.simulation.spark.driver import Driver, Ranges
from tests.simulation.spark.kafka import TOPIC, Kafka
from tests.simulation.spark.ledger import Ledger, Violation

__all__ = ["Engine"]


@dataclass(slots=True)
class Engine:
    """A query: its checkpoint, its sink and what its administrator has set."""

    kafka: Kafka
    rng: Random
    ledger: Ledger
    replaces: bool
    """Whether the sink overwrites by batch id, or appends."""
    ownership: Ownership
    group: str = "g"
    on_reset: str = "fail"
    fails_on_data_loss: bool = True
    offsets: list[str] = field(default_factory=list[str])
    """The log of offsets: a manifest per batch."""
    commits: int = -1
    """The last batch in the log of commits."""
    sink: dict[int, list[int]] = field(default_factory=dict[int, list[int]])
    """The records of each batch, by their numbers."""
    driver: Driver | None = None
    failed: Exception | None = None
    _life: Generator[None] | None = None

    # -- the process ---------------------------------------------------------------------------

    def start(self, driver: Driver, *, available_now: bool) -> None:
        """Start the process."""
        self.ledger.is_shared = driver.options.is_shared
        self.driver, self.failed = driver, None
        last = Manifest.of(json.loads(self.offsets[-1])) if self.offsets else None
        if not driver.options.is_shared and last is not None and last.ownership == "shared":
            self.ledger.takes_over(last, driver.groups.get(last.group or ""))
        self._life = self._run(driver, available_now=available_now)

    def step(self, fails: Callable[[Exception], bool]) -> None:
        """Go on to the next point where a crash can come."""
        assert self._life is not None
        try:
            next(self._life)
        except StopIteration:
            self.stop()
        except Exception as err:
            if not fails(err):
                raise
            self.failed = err
            self.stop()

    def crash(self) -> None:
        """The process is gone, and its member is still in the group."""
        self._life = self.driver = None

    def stop(self) -> None:
        """The process ends as it should."""
        if self.driver is not None:
            self.driver.close()
        self._life = self.driver = None

    # -- one life ------------------------------------------------------------------------------

    def _run(self, driver: Driver, *, available_now: bool) -> Generator[None]:
        if available_now:
            driver.stop_at_what_is_there()
            yield
        number = len(self.offsets) - 1
        if number > self.commits:
            yield from self._batch(driver, number, is_repeated=True)
        while True:
            yield
            start = self._start(driver)
            text = self._next(driver, start)
            if self.offsets and text == self.offsets[-1] and self.rng.random() < 0.9:
                if available_now:
                    return
                continue
            yield
            self.offsets.append(text)
            self.ledger.plans(Manifest.of(json.loads(text)))
            yield from self._batch(driver, len(self.offsets) - 1, is_repeated=False)

    def _start(self, driver: Driver) -> Manifest:
        if self.offsets:
            return Manifest.of(json.loads(self.offsets[-1]))
        start = driver.first()
        if self.ownership == "exclusive":
            self.ledger.begins(start)
        return start

    def _next(self, driver: Driver, start: Manifest) -> str:
        limit = self.rng.choice([None, None, 3, 10])
        found = driver.next(start, limit)
        if found is not start:
            for tp, (first, end) in found.ranges.items():
                self.ledger.plan(self._records({tp: (first, end)}), f"batch {found.number}")
        return json.dumps(found.to_json())

    def _batch(self, driver: Driver, number: int, *, is_repeated: bool) -> Generator[None]:
        """Spark asks no source for a batch in which it has nothing."""
        text = self.offsets[number]
        end = Manifest.of(json.loads(text))
        rows: list[int] = []
        if number == 0:
            driver.first()
        if number == 0 or text != self.offsets[number - 1]:
            yield
            ranges = driver.batch(end)
            rows = self._records(ranges)
            for tp, (first, _) in ranges.items():
                self.ledger.reads(tp, first)
            if end.topic_ids.get(TOPIC) != self.kafka.topic_id:
                self.ledger.may_repeat |= set(rows)  # of a topic of the same name
            if is_repeated:
                self._check_repeated(driver, end, ranges)
            if self.rng.random() < 0.2:
                yield
                if driver.batch(end) != ranges:
                    raise Violation("Differs: two uses of a stream got different ranges")
        yield
        before = self.sink.get(number, [])
        self.sink[number] = rows if self.replaces else [*before, *rows]
        gone = set(before).difference(*self.sink.values())
        self.ledger.write(number, rows, gone)
        yield
        self.commits = number
        self.ledger.vouch(end, set(self.sink[number]))
        if self.rng.random() < 0.3:
            yield
            driver.batch_done(end)  # the control channel, or the option checkpoint

    def _check_repeated(self, driver: Driver, batch: Manifest, ranges: Ranges) -> None:
        self.ledger.plan(
            [
                each
                for tp, span in ranges.items()
                if (known := driver.group.offsets.get(tp)) is not None and known.note is None
                for each in self._records({tp: span})
            ],
            f"the repeated batch {batch.number}",
        )

    def _records(self, ranges: Ranges) -> list[int]:
        return [
            each.number
            for tp, (start, end) in sorted(ranges.items())
            if tp.partition < len(self.kafka.logs)
            for each in self.kafka.log(tp).records[max(start, self.kafka.log(tp).first) : end]
        ]
