"""``kip848 pipeline run``."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Any, Final

from kip848_client.cli._output import put_error
from kip848_client.cli.pipeline._display import Display
from kip848_client.errors import ConfigError, TransportError
from kip848_client.observe.metrics_server import Family, as_text, serving
from kip848_client.spark.pipeline import Pipeline, PipelineConfig, PipelineFailed, Running
from kip848_client.spark.pipeline._config import AVAILABLE_NOW
from kip848_client.spark.pipeline.config import config_from, load_config
from kip848_client.spark.pipeline.core._status import PipelineStatus

__all__ = ["metrics_text", "run_file"]

_TURN_S: Final = 0.5
_METRICS: Final = (
    ("batches", "counter", "Batches that are ended."),
    ("records", "counter", "Records that were read in batches that are ended."),
    ("rows", "counter", "Rows that were written."),
    ("bad", "counter", "Records that could not be decoded, and were left out or buried."),
    ("lag", "gauge", "Offsets that are in no batch yet, of the partitions that it has."),
    ("partitions", "gauge", "Partitions that it has."),
    ("leaving", "gauge", "Partitions that go to other members after the current batch."),
    ("last_batch_ms", "gauge", "How long the last batch took, in milliseconds."),
)


class _Interrupted:
    """Handles Ctrl-C and SIGTERM: once stops cleanly, twice stops at once."""

    def __init__(self) -> None:
        self.times = 0
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._count)

    def _count(self, _number: int, _frame: FrameType | None) -> None:
        self.times += 1
        if self.times > 1:
            raise KeyboardInterrupt


def run_file(arguments: argparse.Namespace) -> int:
    """Run a pipeline: 0 when it is done or was stopped, 1 when it failed. Raises
    ``ConfigError``."""
    config = load_config(arguments.file)
    changes: dict[str, Any] = {}
    if arguments.master is not None:
        changes["master"] = arguments.master
    for name in ("py_files", "archives"):
        said = getattr(arguments, name)
        if said is not None:
            changes[name] = tuple(each for each in said.split(",") if each)
    if arguments.available_now:
        changes["trigger"] = "available-now"
    if arguments.until is not None:
        config = _until(config, arguments.until)
    config = config.model_copy(update={"run": config.run.model_copy(update=changes)})
    pipeline = Pipeline(config)
    display = Display(sys.stdout, is_json=arguments.json)
    try:
        with ExitStack() as stack:
            running = pipeline.start()
            interrupted = _Interrupted()  # not earlier: Spark sets its own handler of Ctrl-C
            if arguments.metrics_port is not None:
                url = stack.enter_context(_metrics(running, arguments.metrics_port))
                put_error(f"metrics at {url}")
            return _follow(running, display, interrupted)
    except PipelineFailed as err:
        display.close(f"failed: {err}")
        put_error(*f"kip848 pipeline: {err}".split("\n"))
        return 1


def _until(config: PipelineConfig, until: str) -> PipelineConfig:
    """Raises ``ConfigError``."""
    parts = {name: getattr(config, name) for name in type(config).model_fields}
    run = {name: getattr(config.run, name) for name in config.run.model_fields_set}
    return config_from({**parts, "run": {**run, "until": until, "trigger": AVAILABLE_NOW}})


@contextmanager
def _metrics(running: Running, port: int) -> Generator[str]:
    """Serve ``/metrics`` on this machine inside the ``with`` block. Raises ``ConfigError``."""
    with ExitStack() as stack:
        try:
            page = serving(lambda: metrics_text(running.status()), "127.0.0.1", port)
            url = stack.enter_context(page)
        except (OSError, OverflowError) as err:
            raise ConfigError(f"--metrics-port {port}: {err}") from err
        yield url


def _follow(running: Running, display: Display, interrupted: _Interrupted) -> int:
    while True:
        display.show(running.status())
        if running.wait(_TURN_S):
            display.show(running.status())
            display.close("done: everything that was there is written")
            return 0
        if interrupted.times:
            display.close("stopping: the batch in hand is finished and committed")
            try:
                running.stop()
            except TransportError as err:
                raise PipelineFailed(f"it could not be stopped in order: {err}") from err
            display.show(running.status())
            display.close("stopped: a restart goes on here")
            return 0


def metrics_text(status: PipelineStatus) -> str:
    """A pipeline's metrics in Prometheus' text format, without unknown values."""
    return as_text(_families(status))


def _families(status: PipelineStatus) -> Iterator[Family]:
    said = status.to_json()
    for name, kind, text in _METRICS:
        if said[name] is not None:
            full = f"kip848_pipeline_{name}" + ("_total" if kind == "counter" else "")
            yield Family(full, kind, [({}, said[name])], text)
    is_up = status.state in ("starting", "running", "stopping")
    yield Family("kip848_pipeline_up", "gauge", [({}, int(is_up))], "Whether it is at work.")
