"""The simulation's command line: one seed with its trace, or many with a summary."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence

from kip848_client.errors import ConfigError
from mock_coordinator.sim.probes import PROBES
from mock_coordinator.sim.swarm import Options, draw_options, with_changes
from mock_coordinator.sim.world import Failure, Result, simulate

__all__ = ["main", "seeds_of"]


def seeds_of(text: str) -> range:
    """``"7"`` or ``"0..199"``, both ends included. Raises ``ConfigError``."""
    first, dots, last = text.partition("..")
    try:
        low = int(first)
        return range(low, (int(last) if dots else low) + 1)
    except ValueError:
        raise ConfigError(f"not a seed or a range of seeds: {text!r}; say 7 or 0..199") from None


def main(arguments: Sequence[str]) -> int:
    """Exit code 0 when every seed held, 1 when one did not, 2 for a wrong option."""
    parser = argparse.ArgumentParser(prog="python -m mock_coordinator.sim", description=__doc__)
    parser.add_argument("--seed", "--seeds", dest="seeds", default="0..9", metavar="A..B")
    parser.add_argument("--trace", action="store_true", help="print every event")
    parser.add_argument("--digest", action="store_true", help="print only seeds and digests")
    parser.add_argument("--probes", action="store_true", help="print which rare paths were reached")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="replace a drawn option"
    )
    asked = parser.parse_args(arguments)
    try:
        seeds = seeds_of(asked.seeds)
        changes = dict(change.split("=", 1) for change in asked.set)
        plans = [with_changes(draw_options(seed), changes) for seed in seeds]
    except (ConfigError, ValueError) as err:
        print(err)
        return 2
    return _run(plans, trace=asked.trace, digest=asked.digest, probes=asked.probes)


def _run(plans: Sequence[Options], *, trace: bool, digest: bool, probes: bool) -> int:
    reached: Counter[str] = Counter()
    failed: list[int] = []
    for options in plans:
        try:
            result = simulate(options, print if trace else None)
        except Failure as failure:
            print(failure)
            failed.append(options.seed)
            continue
        reached.update(result.probes)
        print(f"{options.seed} {result.digest}" if digest else _line(result))
    if probes:
        for name in PROBES:
            print(f"{reached[name]:>8}  {name}")
    if failed:
        print(f"{len(failed)} of {len(plans)} seeds failed: {' '.join(map(str, failed))}")
    return 1 if failed else 0


def _line(result: Result) -> str:
    return (
        f"seed {result.options.seed:>6}  {result.options.profile}  "
        f"{result.virtual_ms / 1000:>7.1f} virtual s  {result.events:>7} events  "
        f"order after {result.converged_ms / 1000:>5.1f} s  {result.records:>6} records  "
        f"{result.digest[:12]}"
    )
