"""``kip848 connect``: ``demo`` shows workers of a Connect group at work.

``_story`` is what happens, ``_worker`` one worker in a process of its own, ``_cast`` holds those
processes, ``_tally`` keeps the books from which the verdict comes, ``_board`` draws them, ``_run``
plays it all.
"""

from __future__ import annotations

import argparse
from typing import Final

__all__ = ["configure", "run"]

_DELAY_MS: Final = 3_000
_DELAY_MS_MAX: Final = 60_000


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    text = (
        "watch workers that share names of connectors and tasks on the embedded coordinator: one "
        "joins, one is killed, one restarts"
    )
    demo = actions.add_parser("demo", help=text, description=text)
    demo.add_argument(
        "--delay-ms",
        type=_delay,
        default=_DELAY_MS,
        metavar="MS",
        help="scheduled.rebalance.max.delay.ms: so long the items of a worker that is gone wait "
        "for it (%(default)s here, 300000 in Kafka Connect)",
    )


def _delay(text: str) -> int:
    value = int(text)
    if not 0 <= value <= _DELAY_MS_MAX:
        raise argparse.ArgumentTypeError(f"{text}: expected 0 to {_DELAY_MS_MAX}")
    return value


def run(arguments: argparse.Namespace) -> int:
    """Play it; exit code 0 when every item runs once in the end and none ever ran twice, else
    1."""
    from kip848_client.cli.connect._run import play

    return play(arguments.delay_ms)
