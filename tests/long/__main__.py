"""``python -m tests.long``: the third test command. Kill series, large ranges of seeds, endurance.

It runs for many hours, by itself: start it on a machine that has nothing else to do. A run that is
stopped, by a signal or by ``--minutes``, goes on the next time with what has not passed. The file
of what has passed and the outputs of all commands are in ``build/long``, unless ``--state`` names
another file. Ends with exit code 1 if something failed, and shows the end of its output.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from tests.long.job import Job, in_turns
from tests.long.jobs import JOBS
from tests.long.running import Run
from tests.long.state import State

__all__ = ["main"]

_STATE: Final = Path(__file__).parents[2] / "build" / "long" / "state.json"
_OUTPUTS: Final = "outputs"


def main(arguments: Sequence[str] | None = None, jobs: Sequence[Job] = JOBS) -> int:
    """Run what has not passed."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        chosen = _chosen(jobs, options.only)
        state = State(options.state)
    except ValueError as err:
        parser.error(str(err))
    parts = in_turns(chosen)
    if options.again:
        state.forget(parts)
    if options.list:
        for job in chosen:
            _say(_line(job, state))
        return 0
    before = [part for part in parts if state.has_passed(part)]
    run = Run(state, options.state.parent / _OUTPUTS, time.monotonic, _say)
    # A plain kill would leave the command's processes: end as an interrupted program does.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        run.go(parts, None if options.minutes is None else options.minutes * 60)
    except KeyboardInterrupt:
        return 130
    finally:
        _say(run.summary(before))
    return 1 if run.failed else 0


def _chosen(jobs: Sequence[Job], wanted: Sequence[str]) -> list[Job]:
    for each in wanted:
        if not any(fnmatchcase(job.name, each) for job in jobs):
            raise ValueError(f"no job is called {each}: --list has them all")
    return [
        job for job in jobs if not wanted or any(fnmatchcase(job.name, each) for each in wanted)
    ]


def _line(job: Job, state: State) -> str:
    passed = [part for part in job.parts if state.has_passed(part)]
    minutes = sum(state.seconds(part) for part in passed) / 60
    took = f"{minutes:>6.1f} min" if passed else " " * 10
    return f"{len(passed):>3} of {len(job.parts):>2} {took}  {job.name}: {job.what}"


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.long",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--only",
        action="append",
        default=[],
        metavar="NAME",
        help="this job, or those of a pattern such as 'chaos-*'; may be given several times",
    )
    parser.add_argument("--list", action="store_true", help="print the jobs and what has passed")
    parser.add_argument("--minutes", type=float, help="start no new part after this many minutes")
    parser.add_argument(
        "--again", action="store_true", help="forget what has passed, of the jobs of --only alone"
    )
    parser.add_argument("--state", type=Path, default=_STATE, help="the file of what has passed")
    return parser


if __name__ == "__main__":
    sys.exit(main())
