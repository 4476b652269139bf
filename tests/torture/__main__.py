"""``python -m tests.torture --minutes 20 --kafka 4.4.0``, or ``--mock 4.2``: is it exactly once?

Two processors, each a process of its own, copy three partitions in transactions. They are killed,
frozen for longer than their session and their transaction last, and succeeded by others with the
same transactional id, while coordinators and leaders move among three brokers. At last a
read_committed reader must find each record once and in order. Ends with exit code 1 if it does not.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import tempfile
from pathlib import Path

from mock_coordinator.core.profiles import PROFILES
from tests.support.kafka_jars import ALL_VERSIONS
from tests.torture.brokers import mock_brokers, real_brokers
from tests.torture.roles import Role
from tests.torture.run import Report, torture

__all__ = ["main"]


async def _run(options: argparse.Namespace, folder: Path) -> Report:
    diaries = folder / "diaries"
    diaries.mkdir()
    real = options.kafka
    brokers = mock_brokers(options.mock) if real is None else real_brokers(real)
    async with brokers as found:
        role = Role.BY_HAND if options.by_hand else Role.PROCESSOR
        return await torture(role, found, diaries, options.minutes * 60, options.seed)


def main() -> int:
    """Torture, and say what came of it."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description=__doc__)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--kafka", choices=ALL_VERSIONS)
    where.add_argument("--mock", choices=tuple(PROFILES))
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--by-hand", action="store_true", help="a consumer and a producer in a loop of their own"
    )
    options = parser.parse_args()
    # A plain kill would leave processes running: end as an interrupted program does.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="kip848-torture-") as folder:
        report = asyncio.run(_run(options, Path(folder)))
    sys.stdout.write(f"{report}\n")
    return 0 if report.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
