"""Play scenario files: ``python -m tests.scenarios [--profile 4.2] [--rewrite] [FILE ...]``.

With ``--kafka 4.4.0`` (a release, or ``all``) the files play on Apache Kafka too, and whatever it
answers otherwise than the file and the bundled coordinator is shown. ``--slow`` includes the files
that wait for more than a few seconds.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.scenarios.oracle import play_on_kafka
from tests.scenarios.runner import scripts
from tests.scenarios.script import Script
from tests.scenarios.suite import check, rewrite
from tests.support.kafka_jars import ALL_VERSIONS

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 1 when anything differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.scenarios", description=__doc__)
    parser.add_argument("files", nargs="*", help="paths, or beginnings of names such as S03")
    parser.add_argument("--profile", help="only this profile")
    parser.add_argument("--rewrite", action="store_true", help="write new outputs into the files")
    parser.add_argument("--kafka", help="a release of Apache Kafka, or all")
    parser.add_argument("--slow", action="store_true", help="with --kafka: the slow files as well")
    chosen = parser.parse_args(arguments)
    files = [Script.read(path) for path in _find(chosen.files)]
    if chosen.rewrite:
        for script in files:
            if rewrite(script):
                print(f"{script.path.name} rewritten: read the diff")
        return 0
    wrong: list[str] = []
    if chosen.kafka:
        releases = ALL_VERSIONS if chosen.kafka == "all" else (chosen.kafka,)
        for release in releases:
            wrong += play_on_kafka(files, release, slow=chosen.slow, say=print)
    else:
        for script in files:
            for profile in script.profiles:
                if chosen.profile in (None, profile):
                    wrong += check(script, profile)
    print("\n".join(wrong) or f"{len(files)} files agree")
    return 1 if wrong else 0


def _find(names: Sequence[str]) -> list[Path]:
    if not names:
        return scripts()
    found = [
        path
        for path in scripts()
        if any(path.name.startswith(name) or path == Path(name).resolve() for name in names)
    ]
    if not found:
        sys.exit(f"no scenario named {', '.join(names)}")
    return found


if __name__ == "__main__":
    sys.exit(main())
