"""``kip848 demo``: a consumer group at work, with members that join, leave, crash and come back.

``_demo`` has the script, ``_member`` is one member in its own process, ``core/_accounting`` counts
what was produced and consumed, and ``_display`` shows it. ``cli/_demo`` runs the script.
"""

from __future__ import annotations

import argparse

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``kip848 demo``."""
    parser.add_argument(
        "--bootstrap",
        metavar="HOST:PORT",
        help="run on this broker (Kafka 4.0 or newer, PLAINTEXT) instead of the embedded one",
    )
    parser.add_argument(
        "--events",
        metavar="FILE",
        help="append the events of members and coordinator to this file, as lines of JSON, for "
        "kip848 report",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the demo, which takes about 20 seconds. Exit code 0 if no record was lost, else 1."""
    from kip848_client.cli.demo._demo import play

    return play(arguments)
