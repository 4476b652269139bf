"""Play one seed with its trace, or many with a summary: whole consumer groups in virtual time."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias, TypeVar

from kip848_client.errors import ConfigError
from kip848_client.history.recording import HistoryFile, Stamp
from mock_coordinator.sim.exactly_once.options import draw_process_options
from mock_coordinator.sim.exactly_once.probes import PROCESS_PROBES
from mock_coordinator.sim.exactly_once.world import ProcessResult, simulate_exactly_once
from mock_coordinator.sim.fetching.options import draw_fetch_options
from mock_coordinator.sim.fetching.probes import FETCH_PROBES
from mock_coordinator.sim.fetching.world import FetchResult, simulate_fetching
from mock_coordinator.sim.probes import PROBES
from mock_coordinator.sim.producing.options import draw_produce_options
from mock_coordinator.sim.producing.probes import PRODUCE_PROBES
from mock_coordinator.sim.producing.world import ProduceResult, simulate_producing
from mock_coordinator.sim.swarm import AnyParameters, Options, draw_options, with_changes
from mock_coordinator.sim.verdict import Failure, Outcome
from mock_coordinator.sim.workers.options import draw_worker_options
from mock_coordinator.sim.workers.probes import WORKER_PROBES
from mock_coordinator.sim.workers.world import WorkerResult, simulate_workers
from mock_coordinator.sim.world import Result, simulate

__all__ = ["configure", "main", "run", "seeds_of"]

AnyOutcome = TypeVar("AnyOutcome", bound=Outcome[Any])
Sink: TypeAlias = Callable[[str], None]


def seeds_of(text: str) -> range:
    """``"7"`` or ``"0..199"``, both ends included. Raises ``ConfigError``."""
    first, dots, last = text.partition("..")
    try:
        low = int(first)
        return range(low, (int(last) if dots else low) + 1)
    except ValueError:
        raise ConfigError(f"not a seed or a range of seeds: {text!r}; say 7 or 0..199") from None


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
    others = ("fetching", "producing", "exactly_once", "workers")
    if arguments.events and any(getattr(arguments, each) for each in others):
        raise ConfigError("--events is for worlds of groups")
    seeds = seeds_of(arguments.seeds)
    if arguments.fetching:
        worlds = [with_changes(draw_fetch_options(seed), changes) for seed in seeds]
        summary = _Summary(FETCH_PROBES, arguments)
        return summary.play(worlds, simulate_fetching, _fetching_line)
    if arguments.producing:
        plays = [with_changes(draw_produce_options(seed), changes) for seed in seeds]
        return _Summary(PRODUCE_PROBES, arguments).play(plays, simulate_producing, _producing_line)
    if arguments.exactly_once:
        lives = [with_changes(draw_process_options(seed), changes) for seed in seeds]
        summary = _Summary(PROCESS_PROBES, arguments)
        return summary.play(lives, simulate_exactly_once, _exactly_once_line)
    if arguments.workers:
        shifts = [with_changes(draw_worker_options(seed), changes) for seed in seeds]
        return _Summary(WORKER_PROBES, arguments).play(shifts, simulate_workers, _workers_line)
    plans = [with_changes(draw_options(seed), changes) for seed in seeds]
    if arguments.events is not None:
        return _recorded(arguments, plans)
    return _Summary(PROBES, arguments).play(plans, simulate, _line)


def _recorded(arguments: argparse.Namespace, plans: Sequence[Options]) -> int:
    """Play one world, and write its history down. Raises ``ConfigError``."""
    if len(plans) != 1:
        raise ConfigError("--events is for one world: say --seed 7")
    try:
        file = HistoryFile(arguments.events)
    except OSError as err:
        raise ConfigError(f"--events {arguments.events}: {err.strerror or err}") from err
    stamp = Stamp(writer=f"seed-{plans[0].seed}", host="simulation")

    def play(options: Options, sink: Sink | None) -> Result:
        return simulate(options, sink, lambda event: file.append(stamp.on(event)))

    try:
        return _Summary(PROBES, arguments).play(plans, play, _line)
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
        simulate_one: Callable[[AnyParameters, Sink | None], AnyOutcome],
        line: Callable[[AnyOutcome], str],
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
            print(f"{options.seed} {result.digest}" if self._digest else line(result))
        for name in self._probes:
            print(f"{self._reached[name]:>8}  {name}")
        if self._failed:
            seeds = " ".join(map(str, self._failed))
            print(f"{len(self._failed)} of {len(plans)} seeds failed: {seeds}")
        return 1 if self._failed else 0


def _line(result: Result) -> str:
    return (
        f"seed {result.options.seed:>6}  {result.options.profile}  "
        f"{result.virtual_ms / 1000:>7.1f} virtual s  {result.events:>7} events  "
        f"order after {result.converged_ms / 1000:>5.1f} s  {result.records:>6} records  "
        f"{result.digest[:12]}"
    )


def _fetching_line(result: FetchResult) -> str:
    return (
        f"seed {result.options.seed:>6}  {result.options.profile}  "
        f"{result.virtual_ms / 1000:>7.1f} virtual s  {result.events:>7} events  "
        f"all read after {result.converged_ms / 1000:>5.1f} s  "
        f"{result.records:>6} of {result.written:>6} records  {result.requests:>5} fetches  "
        f"{result.resets:>3} resets  {result.truncations:>3} truncations  {result.digest[:12]}"
    )


def _producing_line(result: ProduceResult) -> str:
    return (
        f"seed {result.options.seed:>6}  {result.options.profile}  "
        f"{result.virtual_ms / 1000:>7.1f} virtual s  {result.events:>7} events  "
        f"order after {result.converged_ms / 1000:>5.1f} s  "
        f"{result.records:>6} of {result.appended:>6} records  {result.committed:>4} of "
        f"{result.transactions:>4} transactions  {result.requests:>6} requests  "
        f"{result.digest[:12]}"
    )


def _exactly_once_line(result: ProcessResult) -> str:
    return (
        f"seed {result.options.seed:>6}  {result.options.profile}  "
        f"{result.virtual_ms / 1000:>7.1f} virtual s  {result.events:>7} events  "
        f"order after {result.converged_ms / 1000:>5.1f} s  "
        f"{result.records:>6} of {result.written:>6} inputs  {result.committed:>4} of "
        f"{result.transactions:>4} transactions  {result.digest[:12]}"
    )


def _workers_line(result: WorkerResult) -> str:
    return (
        f"seed {result.options.seed:>6}  {result.options.profile}  "
        f"{result.virtual_ms / 1000:>7.1f} virtual s  {result.events:>7} events  "
        f"order after {result.converged_ms / 1000:>5.1f} s  {result.records:>5} starts  "
        f"{result.moves:>3} moves where {result.ideal:>3} had to be  {result.digest[:12]}"
    )
