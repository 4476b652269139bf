"""``python -m tests.chaos --minutes 20 --kafka 4.4.0``: is nothing lost, whatever happens?

Two processors copy three partitions exactly once, three consumers read them at least once, each of
them a process of its own, on three brokers. Processes are killed, frozen, succeeded, blocked;
brokers are killed, leaders and coordinators move; connections are dropped, bytes swallowed, in one
direction or both, or late. Ends with exit code 1 if a record is lost, or copied twice, or if a
consumer has committed more than was processed. The seed makes the dice, by which all harm is
chosen; when what happens differs from run to run.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from tests.chaos.run import Report, chaos
from tests.support.kafka_jars import ALL_VERSIONS
from tests.torture.brokers import proxied_brokers

__all__ = ["main"]


async def _run(options: argparse.Namespace, folder: Path) -> Report:
    async with proxied_brokers(options.kafka, folder / "brokers") as (brokers, proxy):
        return await chaos(brokers, proxy, folder, options.minutes * 60, options.seed)


def main() -> int:
    """Let chaos reign, and say what came of it."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--kafka", choices=ALL_VERSIONS, nargs="?", const=ALL_VERSIONS[-1])
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10_000))
    parser.add_argument("--keep", type=Path, help="an empty folder for what everybody tells")
    options = parser.parse_args()
    options.kafka = options.kafka or ALL_VERSIONS[-1]
    # A plain kill would leave processes running: end as an interrupted program does.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.stdout.write(f"Kafka {options.kafka}, seed {options.seed}\n")
    sys.stdout.flush()
    folder = options.keep or Path(tempfile.mkdtemp(prefix="kip848-chaos-"))
    folder.mkdir(parents=True, exist_ok=True)
    is_clean = False
    try:
        report = asyncio.run(_run(options, folder))
        is_clean = report.is_clean
        sys.stdout.write(f"{report}\n")
    finally:
        if is_clean and not options.keep:
            shutil.rmtree(folder)
        else:
            sys.stdout.write(f"what everybody told is in {folder}\n")
    return 0 if is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
