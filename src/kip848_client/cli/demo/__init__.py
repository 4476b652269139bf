"""``kip848 demo``: a consumer group at work, with members that join, leave, crash and come back.

``_story`` is what happens and when, ``_member`` one member in a process of its own, ``_cast`` holds
those processes, ``_tally`` keeps the books from which the verdict comes, ``_board`` draws them,
``_admin`` asks the broker for topics, ``_run`` plays it all.
"""

from __future__ import annotations

import argparse

__all__ = ["configure", "run"]


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of ``kip848 demo``."""
    parser.add_argument(
        "--bootstrap",
        metavar="HOST:PORT",
        help="play on this broker (Kafka 4.0 or newer, PLAINTEXT) instead of the embedded one",
    )

    parser.add_argument(
        "--events",
        metavar="FILE",
        help="write what members and coordinator see at the end of this file, as lines of JSON, "
        "for kip848 report",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the demo in about 20 seconds. Exit code 0 if no record was lost, otherwise 1."""
    from kip848_client.cli.demo._run import play

    return play(arguments)
