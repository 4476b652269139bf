"""``kip848 pipeline``: from topics to Parquet, tables or a topic, on Spark.

``run`` runs ``pipeline.toml``; ``demo`` has its own broker and records; ``package`` writes the
package as a file for executors. ``_display`` shows a running pipeline, ``_run`` runs one, ``_demo``
plays the demo and ``_accounting`` counts its records.
"""

from __future__ import annotations

import argparse

from kip848_client.cli._output import put
from kip848_client.errors import ConfigError

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    text = "run the pipeline that a file says, until it is done or interrupted"
    runs = actions.add_parser("run", help=text, description=text)
    runs.add_argument("file", metavar="PIPELINE.toml", help="docs/reference/pipeline.md has all")
    runs.add_argument("--master", help="Spark's master, in place of run.master of the file")
    runs.add_argument(
        "--py-files",
        metavar="FILE[,FILE]",
        help="Python files for executors, in place of run.py_files; on a cluster they get this "
        "package anyway",
    )
    runs.add_argument(
        "--archives",
        metavar="FILE[,FILE]",
        help="archives that are unpacked where executors run, in place of run.archives",
    )
    runs.add_argument(
        "--json", action="store_true", help="print what happens as a JSON object a line"
    )
    runs.add_argument(
        "--available-now",
        action="store_true",
        help="end when everything is written that was there at the start",
    )
    runs.add_argument(
        "--until",
        metavar="END",
        help="end at a time (2026-11-26T18:00:00Z), at offsets "
        '({"orders": {"0": 500}}) or "now", in place of run.until of the file',
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
    text = (
        "write this package, in pure Python, for --py-files of spark-submit; kip848 pipeline run "
        "does so by itself on a cluster"
    )
    package = actions.add_parser("package", help=text, description=text)
    package.add_argument("file", metavar="FILE.zip")


def run(arguments: argparse.Namespace) -> int:
    """Exit code 0: done, or stopped cleanly; 1: it failed. Raises ``ConfigError``."""
    if arguments.action == "package":
        return _package(arguments.file)
    from kip848_client.spark._environment import check_environment

    check_environment()
    if arguments.action == "demo":
        from kip848_client.cli.pipeline._demo import play

        return play(arguments)
    from kip848_client.cli.pipeline._run import run_file

    return run_file(arguments)


def _package(file: str) -> int:
    from kip848_client.spark._archive import write_archive

    try:
        written = write_archive(file)
    except OSError as err:
        raise ConfigError(f"{file} cannot be written: {err}") from err
    put(f"{written}: {written.stat().st_size:,} bytes")
    return 0
