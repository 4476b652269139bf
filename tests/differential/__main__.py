"""``python -m tests.differential --kafka 4.4.0 --seeds 0..200``: our coordinator against real
Kafka.

Each seed is a random sequence of requests, played on an Apache Kafka broker and on our mock with
that version's profile and the same topic ids. The answers must be equal, error texts included; the
tables in ``_compare`` say what may differ. Prints one line per release and kind, the story of each
sequence that diverged with a trace that is cut down and can be played again (``--replay``), and
ends with exit code 1 if there was one.

``--kind`` plays all seeds as one kind. ``--against twin`` plays every sequence on the real broker
twice, under other group ids: whatever differs then is a fault of the comparison, or chance in Kafka
itself. ``--coverage`` shows what was asked and answered.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.differential._minimise import replayed
from tests.differential._outcome import Outcome
from tests.differential._plan import Kind
from tests.differential._report import coverage, story, summary
from tests.differential._run import WORKERS, Against, arena, configs_of, run
from tests.differential._trace import read_trace
from tests.differential.kinds import KINDS, exists, kind_named
from tests.support.kafka_jars import ALL_VERSIONS, KafkaUnavailableError

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    # A plain kill would leave the brokers running: end as an interrupted program does.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    versions = ALL_VERSIONS if options.kafka == "all" else options.kafka.split(",")
    kind = None if options.kind is None else kind_named(options.kind)
    failed = False
    try:
        for version in versions:
            if options.replay is not None:
                failed |= _replay(version, options.replay, options.against)
            elif kind is None or exists(kind, version):
                failed |= _play(version, kind, options)
    except KafkaUnavailableError as err:
        sys.stderr.write(f"{err}\n")
        return 2
    return 1 if failed else 0


def _play(version: str, kind: Kind | None, options: argparse.Namespace) -> bool:
    outcomes: list[Outcome] = []
    began = time.monotonic()
    found = run(
        version,
        options.seeds,
        options.against,
        kind,
        workers=options.workers,
        minimise=not options.whole,
    )
    for outcome in found:
        outcomes.append(outcome)
        if outcome.too_slow:
            _say(f"{outcome.kind} seed {outcome.seed}: not played, {outcome.too_slow}")
        elif outcome.divergences or (outcome.differing_texts and options.texts):
            _say(story(outcome))
            if outcome.trace:
                _say(f"  to play it again: --replay {_kept(version, outcome)}")
    took = time.monotonic() - began
    _say(summary(version, outcomes, took))
    if options.coverage:
        _say(coverage(outcomes))
    return any(each.divergences or each.differing_texts or each.too_slow for each in outcomes)


def _replay(version: str, path: Path, against: Against) -> bool:
    trace = read_trace(path.read_text().splitlines())
    kind = kind_named(trace.kind)
    with arena(version, configs_of(kind, version), against, secure=kind.secure) as place:
        real, other = place.sides()
        outcome = replayed(trace, place.topics, "0", real, other)
        real.close()
        other.close()
    _say(story(outcome, history=len(outcome.steps)))
    return bool(outcome.divergences)


def _kept(version: str, outcome: Outcome) -> Path:
    folder = Path(tempfile.gettempdir()) / "kip848-differential"
    folder.mkdir(exist_ok=True)
    path = folder / f"{version}-{outcome.kind}-{outcome.seed}.trace"
    path.write_text(f"{outcome.trace}\n")
    return path


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.differential",
        description="Compare the bundled coordinator with real Kafka, answer by answer.",
    )
    parser.add_argument("--kafka", default="4.4.0", help="releases, comma separated, or all")
    parser.add_argument("--seeds", type=_seeds, default=range(50), help="A..B (B not included)")
    parser.add_argument("--kind", choices=[kind.name for kind in KINDS], help="one kind only")
    parser.add_argument("--against", choices=("mock", "twin"), default="mock")
    parser.add_argument("--workers", type=int, default=WORKERS, help="sequences at a time")
    parser.add_argument("--coverage", action="store_true", help="show what was asked and answered")
    parser.add_argument("--texts", action="store_true", help="show sequences with only other texts")
    parser.add_argument("--whole", action="store_true", help="do not cut traces down")
    parser.add_argument("--replay", type=Path, help="a trace that was kept")
    return parser


def _seeds(text: str) -> range:
    first, dots, last = text.partition("..")
    return range(int(first), int(last)) if dots else range(int(first), int(first) + 1)


if __name__ == "__main__":
    sys.exit(main())
