"""What a pipeline measures, for Prometheus: ``MetricsServer`` shows it while it runs."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Self

from kip848_client.errors import ConfigError
from kip848_client.spark.pipeline._running import Running
from kip848_client.spark.pipeline.core._status import PipelineStatus

__all__ = ["MetricsServer", "as_text"]

_METRICS: Final = (
    ("batches", "counter", "Batches that are ended."),
    ("records", "counter", "Records that were read in batches that are ended."),
    ("rows", "counter", "Rows that were written."),
    ("bad", "counter", "Records that could not be decoded, and were left out or buried."),
    ("lag", "gauge", "Offsets that are in no batch yet, of the partitions that it has."),
    ("partitions", "gauge", "Partitions that it has."),
    ("leaving", "gauge", "Partitions that others shall have when their batch is ended."),
    ("last_batch_ms", "gauge", "How long the last batch took, in milliseconds."),
)


def as_text(status: PipelineStatus) -> str:
    """In Prometheus' text format, the total names of counters included. What is not known is left
    out."""
    said = status.to_json()
    lines: list[str] = []
    for name, kind, text in _METRICS:
        if said[name] is None:
            continue
        full = f"kip848_pipeline_{name}" + ("_total" if kind == "counter" else "")
        lines += [f"# HELP {full} {text}", f"# TYPE {full} {kind}", f"{full} {said[name]}"]
    is_up = int(status.state in ("starting", "running", "stopping"))
    lines += [
        "# HELP kip848_pipeline_up Whether it is at work.",
        "# TYPE kip848_pipeline_up gauge",
        f"kip848_pipeline_up {is_up}",
    ]
    return "\n".join(lines) + "\n"


class MetricsServer:
    """Answers ``/metrics`` on this machine, in a thread of its own, inside its ``with`` block.
    Raises ``ConfigError`` for a port that is taken."""

    def __init__(self, running: Running, port: int) -> None:
        try:
            self._server = ThreadingHTTPServer(("127.0.0.1", port), _handler(running))
        except (OSError, OverflowError) as err:
            raise ConfigError(f"--metrics-port {port}: {err}") from err
        self.url = f"http://127.0.0.1:{self._server.server_port}/metrics"
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="kip848-metrics", daemon=True
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(running: Running) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """The metrics, at any path."""
            body = as_text(running.status()).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(
            self,
            format: str,  # noqa: A002 - the base class names it so
            *args: Any,
        ) -> None:
            """Not worth a line."""
            del format, args

    return Handler
