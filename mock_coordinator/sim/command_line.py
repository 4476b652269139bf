"""Play one seed with its trace, or many with a summary: whole consumer groups in virtual time."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from kip848_client.errors import ConfigError
from kip848_client.history.recording import HistoryFile, Stamp
from mock_coordinator.sim.group_world import GroupWorld
from mock_coordinator.sim.swarm import AnyParameters, Options, with_changes
from mock_coordinator.sim.verdict import Failure, Outcome
from mock_coordinator.sim.world import World
from mock_coordinator.sim.world_context import Sink
from mock_coordinator.sim.worlds import WORLDS

__all__ = ["configure", "main", "run", "seeds_of"]


def seeds_of(text: str) -> range:
    """``"7"`` or ``"0..199"``, both ends included. Raises ``ConfigError``."""
    first, dots, last = text.partition("..")
    try:
        low = int(first)
        seeds = range(low, (int(last) if dots else low) + 1)
    except ValueError:
        seeds = range(0)
    if not seeds:
        raise ConfigError(f"not a seed or a range of seeds: {text!r}; say 7 or 0..199")
    return seeds


def main(arguments: Sequence[str]) -> int:
    """``python -m mock_coordinator.sim``; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m mock_coordinator.sim", description=__doc__)
    configure(parser)
    try:
        return run(parser.parse_args(arguments))
    except ConfigError as err:
        sys.stderr.write(f"{err}\n")
        return 2


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument(
        "--seed",
        "--seeds",
        dest="seeds",
        default="0..9",
        metavar="A..B",
        help="one seed or a range with both ends (%(default)s)",
    )
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument(
        "--fetching", action="store_true", help="play worlds of fetching, not of groups"
    )
    kinds.add_argument(
        "--producing", action="store_true", help="play worlds of producers, not of groups"
    )
    kinds.add_argument(
        "--exactly-once", action="store_true", help="play worlds of processors, not of groups"
    )
    kinds.add_argument(
        "--workers", action="store_true", help="play worlds of Connect workers, not of consumers"
    )
    parser.add_argument("--trace", action="store_true", help="print every event")
    parser.add_argument(
        "--events",
        metavar="FILE",
        help="write what members and coordinators see at the end of this file, as lines of JSON, "
        "for kip848 report; of one world of groups",
    )
    parser.add_argument("--digest", action="store_true", help="print only seeds and digests")
    parser.add_argument("--probes", action="store_true", help="print which rare paths were reached")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="replace a drawn option"
    )


def run(arguments: argparse.Namespace) -> int:
    """Play the seeds. Returns 0 when every one held and 1 when one did not; raises ``ConfigError``
    for a seed or an option that makes no sense."""
    changes = dict(_change(text) for text in arguments.set)
    chosen = (world for world in WORLDS.values() if getattr(arguments, _name(world), False))
    kind = next(chosen, GroupWorld)
    seeds = seeds_of(arguments.seeds)
    plans = [with_changes(kind.draw(seed), changes) for seed in seeds]
    if arguments.events is None:
        return _Summary(kind.PROBES, arguments).play(plans, kind.play)
    if kind is not GroupWorld:
        raise ConfigError("--events is for worlds of groups")
    return _recorded(arguments, plans)


def _name(world: type[World[Any, Any]]) -> str:
    """Of its argument; empty for the kind that has none."""
    return world.FLAG.removeprefix("--").replace("-", "_")


def _recorded(arguments: argparse.Namespace, plans: Sequence[Options]) -> int:
    """Play one world, and write its history down. Raises ``ConfigError``."""
    if len(plans) != 1:
        raise ConfigError("--events is for one world: say --seed 7")
    try:
        file = HistoryFile(arguments.events)
    except OSError as err:
        raise ConfigError(f"--events {arguments.events}: {err.strerror or err}") from err
    stamp = Stamp(writer=f"seed-{plans[0].seed}", host="simulation")

    def play(options: Options, sink: Sink | None) -> Outcome[Options]:
        return GroupWorld.create(options, sink, lambda event: file.append(stamp.on(event))).run()

    try:
        return _Summary(GroupWorld.PROBES, arguments).play(plans, play)
    finally:
        file.end()


def _change(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator:
        raise ConfigError(f"--set {text!r}: expected NAME=VALUE, e.g. lose_request=0.1")
    return name, value


class _Summary:
    """What many seeds came to. ``arguments`` say what is to be shown of them."""

    def __init__(self, probes: Iterable[str], arguments: argparse.Namespace) -> None:
        self._probes = tuple(probes) if arguments.probes else ()
        self._sink: Sink | None = print if arguments.trace else None
        self._digest: bool = arguments.digest
        self._reached: Counter[str] = Counter()
        self._failed: list[int] = []

    def play(
        self,
        plans: Sequence[AnyParameters],
        simulate_one: Callable[[AnyParameters, Sink | None], Outcome[AnyParameters]],
    ) -> int:
        """Play all, and print what comes of them; returns the exit code."""
        for options in plans:
            try:
                result = simulate_one(options, self._sink)
            except Failure as failure:
                print(failure)
                self._failed.append(options.seed)
                continue
            self._reached.update(result.probes)
            print(f"{options.seed} {result.digest}" if self._digest else result.line())
        for name in self._probes:
            print(f"{self._reached[name]:>8}  {name}")
        if self._failed:
            seeds = " ".join(map(str, self._failed))
            print(f"{len(self._failed)} of {len(plans)} seeds failed: {seeds}")
        return 1 if self._failed else 0
