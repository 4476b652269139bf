"""``python -m tests.differential --kafka 4.4.0 --seeds 0..200``: our coordinator against real
Kafka.

Each seed is a random sequence of group requests, played on an Apache Kafka broker and on ``kip848
mock`` with that version's profile and the same topic ids. The answers must be equal, error texts
included; the tables in ``_compare`` say what may differ. Prints one line per release, the story
of each sequence that diverged, and ends with exit code 1 if there was one.

``--against twin`` plays every sequence on the real broker twice, under other group ids: whatever
differs then is a fault of the comparison, or chance in Kafka itself. ``--coverage`` shows what
was asked and answered.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence

from tests.differential._report import coverage, story, summary
from tests.differential._run import run
from tests.support.kafka_jars import ALL_VERSIONS, KafkaUnavailableError

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    # A plain kill would leave the brokers running: end as an interrupted program does.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    versions = ALL_VERSIONS if options.kafka == "all" else options.kafka.split(",")
    failed = False
    for version in versions:
        outcomes = []
        try:
            for outcome in run(version, options.seeds, options.against):
                outcomes.append(outcome)
                if outcome.divergences or outcome.differing_texts:
                    failed = True
                    if outcome.divergences or options.texts:
                        sys.stdout.write(f"{story(outcome)}\n")
                        sys.stdout.flush()
        except KafkaUnavailableError as err:
            sys.stderr.write(f"{err}\n")
            return 2
        sys.stdout.write(f"{summary(version, outcomes)}\n")
        if options.coverage:
            sys.stdout.write(f"{coverage(outcomes)}\n")
        sys.stdout.flush()
    return 1 if failed else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tests.differential",
        description="Compare the bundled coordinator with real Kafka, answer by answer.",
    )
    parser.add_argument("--kafka", default="4.4.0", help="releases, comma separated, or all")
    parser.add_argument("--seeds", type=_seeds, default=range(50), help="A..B (B not included)")
    parser.add_argument("--against", choices=("mock", "twin"), default="mock")
    parser.add_argument("--coverage", action="store_true", help="show what was asked and answered")
    parser.add_argument("--texts", action="store_true", help="show sequences with only other texts")
    return parser


def _seeds(text: str) -> range:
    first, dots, last = text.partition("..")
    return range(int(first), int(last)) if dots else range(int(first), int(first) + 1)


if __name__ == "__main__":
    sys.exit(main())
