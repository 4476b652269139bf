"""``python -m tests.situations --kafka 4.4.0``: what happens to a group in production, and how long
nothing was read meanwhile.

Without ``--kafka`` the bundled brokers are asked. ``--only NAME`` plays one situation,
``--times N`` so often side by side. Ends with exit code 1 if anything went wrong.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
import traceback

from kip848_client import Admin
from tests.situations.run import (
    BY_NAME,
    CALM,
    HARMFUL,
    LONG,
    Stage,
    play_all,
    play_rights,
    running,
)
from tests.situations.secured import secured
from tests.torture.brokers import NODES

__all__ = ["main"]


async def _all(server: str) -> list[str]:
    async with running(server) as brokers:
        told = await play_all(server, brokers, HARMFUL)
    async with secured(server) as broker:
        return told + await play_rights(broker)


async def _one(server: str, name: str, times: int) -> list[str]:
    (play,) = (each for each in (*CALM, LONG, *HARMFUL) if each.__name__ == name)
    async with running(server) as brokers, Admin(bootstrap_servers=brokers.bootstrap) as admin:
        stage = Stage(brokers.bootstrap, admin, len(NODES), server in BY_NAME)
        what = (brokers,) if play in HARMFUL else ()
        told = await asyncio.gather(*(stage.play(play, *what) for _ in range(times)))
    errors = [each for each in told if isinstance(each, Exception)]
    if errors:
        raise ExceptionGroup("what went wrong", errors)
    return [str(each) for each in told]


def main() -> int:
    """Play, and tell what came of it."""
    parser = argparse.ArgumentParser(prog="python -m tests.situations", description=__doc__)
    parser.add_argument("--kafka", default="mock", help="a release")
    parser.add_argument("--only", metavar="NAME")
    parser.add_argument("--times", type=int, default=1, help="side by side, with --only")
    options = parser.parse_args()
    began = time.monotonic()
    try:
        if options.only:
            told = asyncio.run(_one(options.kafka, options.only, options.times))
        else:
            told = asyncio.run(_all(options.kafka))
    except ExceptionGroup as err:
        traceback.print_exception(err)
        return 1
    seconds = time.monotonic() - began
    sys.stdout.write("\n".join([*told, f"{options.kafka}: {seconds:.1f} s in all"]) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
