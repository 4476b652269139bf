"""Every scenario file, on the bundled coordinator and on Apache Kafka.

``pytest --rewrite`` writes what the bundled coordinator prints into the files; the diff is for a
human to read.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenarios.oracle import compare_on_kafka, groups_of_files
from tests.scenarios.runner import scripts
from tests.scenarios.script import Script
from tests.scenarios.suite import check, rewrite
from tests.support.pytest_kafka import chosen_versions, skip_without_kafka


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "broker_files" not in metafunc.fixturenames:
        return
    cases = [
        pytest.param(release, number, id=f"{release}-{label}")
        for release in chosen_versions(metafunc.config)
        for number, label in enumerate(groups_of_files(_all(), release).labels)
    ]
    metafunc.parametrize(("release", "broker_files"), cases)


def _all() -> list[Script]:
    return [Script.read(path) for path in scripts()]


@pytest.mark.parametrize("path", scripts(), ids=lambda path: path.stem)
def test_the_coordinator_does_what_the_file_says(
    path: Path, request: pytest.FixtureRequest
) -> None:
    script = Script.read(path)
    if request.config.getoption("--rewrite"):
        rewrite(script)
        script = Script.read(path)
    wrong = [line for profile in script.profiles for line in check(script, profile)]
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.mark.real_kafka
def test_kafka_does_what_the_file_says(release: str, broker_files: int) -> None:
    """Files that need the same broker settings share a broker; that is one case here."""
    with skip_without_kafka():
        wrong = compare_on_kafka(groups_of_files(_all(), release), broker_files)
    assert not wrong, "\n" + "\n".join(wrong)


def test_rewriting_changes_nothing_that_is_right() -> None:
    """So a diff after --rewrite shows behaviour, never layout."""
    for script in _all():
        outputs = {
            block.line: {each: block.expected(each) or [] for each in script.profiles}
            for block in script.blocks
        }
        assert script.text(outputs) == script.path.read_text(encoding="utf-8"), script.name


def test_every_number_has_a_file() -> None:
    numbers = {int(path.name[1:3]) for path in scripts() if path.name.startswith("S")}
    assert numbers == set(range(1, 88))


def test_a_file_that_no_broker_plays_says_why() -> None:
    for script in _all():
        assert script.real_kafka == "yes" or script.reason, script.name
