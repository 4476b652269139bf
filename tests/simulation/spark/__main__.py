"""Plays seeds: ``python -m tests.simulation.spark --seeds 0..1999``. Exit code 1 if one fails."""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter

from tests.simulation.spark.ledger import Violation
from tests.simulation.spark.world import play


def main(arguments: list[str]) -> int:
    """Print what broke, and what the seeds took."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.spark")
    parser.add_argument("--seeds", default="0..199", help="FIRST..LAST, which is played, too")
    first, last = parser.parse_args(arguments).seeds.split("..")
    began, failed, taken = time.perf_counter(), 0, Counter[str]()
    for seed in range(int(first), int(last) + 1):
        try:
            taken += play(seed).happened
        except Violation as err:
            failed += 1
            print(err)
    seconds = time.perf_counter() - began
    print(f"{int(last) - int(first) + 1} seeds, {failed} failed, {seconds:.1f} s: {dict(taken)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
