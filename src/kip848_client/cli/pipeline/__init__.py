"""``kip848 pipeline``: from topics to Parquet, tables or a topic, on Spark.

``run`` is for ``pipeline.toml``; ``demo`` brings its own broker and records. ``_board`` shows a
pipeline at work, ``_run`` runs one, ``_demo`` plays the demo and ``_books`` counts for it.
"""

from __future__ import annotations

import argparse

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    text = "run the pipeline that a file says, until it is done or interrupted"
    runs = actions.add_parser("run", help=text, description=text)
    runs.add_argument("file", metavar="PIPELINE.toml", help="docs/reference/pipeline.md has all")
    runs.add_argument("--master", help="Spark's master, in place of run.master of the file")
    runs.add_argument(
        "--json", action="store_true", help="print what happens as a JSON object a line"
    )
    runs.add_argument(
        "--available-now",
        action="store_true",
        help="end when everything is written that was there at the start",
    )
    runs.add_argument(
        "--metrics-port",
        type=int,
        metavar="PORT",
        help="show what is measured at http://127.0.0.1:PORT/metrics, for Prometheus; 0 picks one",
    )
    text = (
        "watch a pipeline at work: generated records, the embedded broker, another consumer that "
        "joins and leaves, a driver that is killed"
    )
    demo = actions.add_parser("demo", help=text, description=text)
    demo.add_argument(
        "--seconds",
        type=int,
        default=20,
        metavar="N",
        help="for how long records are produced, from the first batch on (%(default)s)",
    )
    demo.add_argument(
        "--output", metavar="FOLDER", help="keep what is written there; without it, it is removed"
    )


def run(arguments: argparse.Namespace) -> int:
    """0: done, or stopped in order; 1: it failed. Raises ``ConfigError``."""
    from kip848_client.spark._environment import check_environment

    check_environment()
    if arguments.action == "demo":
        from kip848_client.cli.pipeline._demo import play

        return play(arguments)
    from kip848_client.cli.pipeline._run import run_file

    return run_file(arguments)
