"""``kip848 connect``: ``demo`` shows workers of a Connect group at work.

``_script`` has the steps, ``_worker`` is one worker in its own process, ``core/_accounting``
records where items ran, ``_display`` shows it, and ``_demo`` plays it with the engine of
``cli/_demo``.
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
        help="scheduled.rebalance.max.delay.ms: how long the items of a worker that is gone wait "
        "for its return (%(default)s here, 300000 in Kafka Connect)",
    )


def _delay(text: str) -> int:
    value = int(text)
    if not 0 <= value <= _DELAY_MS_MAX:
        raise argparse.ArgumentTypeError(f"{text}: expected 0 to {_DELAY_MS_MAX}")
    return value


def run(arguments: argparse.Namespace) -> int:
    """Run the demo. Exit code 0 if every item runs once at the end and none ever ran twice, else
    1."""
    from kip848_client.cli.connect._demo import play

    return play(arguments.delay_ms)
