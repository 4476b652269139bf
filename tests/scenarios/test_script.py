"""The scenario format itself: what is read, what is refused, and that a wrong output is noticed."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.scenarios.commands import COMMANDS, run
from tests.scenarios.core_backend import CoreBackend
from tests.scenarios.notation import (
    Arguments,
    NotationError,
    duration_ms,
    partitions_text,
    read_partitions,
)
from tests.scenarios.scenario_run import ScenarioRun
from tests.scenarios.script import PROFILES, Script, ScriptError, expand, merge
from tests.scenarios.suite import check, rewrite

GOOD = """\
# X01: a join.

topic create foo partitions=2
----
ok

## A comment.
join A topics=foo
----
A: epoch 1|2, assignment foo[0,1]
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "X01_test.txt"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_right_file_agrees_in_every_profile(tmp_path: Path) -> None:
    script = Script.read(written(tmp_path, GOOD))
    assert script.profiles == PROFILES
    assert [check(script, profile) for profile in PROFILES] == [[]] * len(PROFILES)


def test_a_wrong_output_is_shown_with_its_place(tmp_path: Path) -> None:
    script = Script.read(written(tmp_path, GOOD.replace("foo[0,1]", "foo[0]")))
    found = check(script, "4.2")
    assert found[0] == "X01_test.txt:8 on 4.2: join A topics=foo"
    assert "    -A: epoch 1, assignment foo[0]" in found
    assert "    +A: epoch 1, assignment foo[0,1]" in found


def test_rewriting_repairs_outputs_and_keeps_everything_else(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD.replace("1|2, assignment foo[0,1]", "7"))
    assert rewrite(Script.read(path))
    assert path.read_text(encoding="utf-8") == GOOD
    assert not rewrite(Script.read(path))


def test_a_profile_without_a_section_differs(tmp_path: Path) -> None:
    text = GOOD.replace("----\nA:", "---- 4.0-4.2\nA:")
    script = Script.read(written(tmp_path, text))
    assert check(script, "4.2") == []
    assert "no output section" in "\n".join(check(script, "4.3"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("join A\n----\nok\n", "opens with a comment"),
        ("# X\n\njoin A\n", "no ---- after"),
        ("# X\n\njoin A\njoin B\n----\nok\n", "---- expected"),
        ("# X\n\njoin A\n---- 4.9\nok\n", "not profiles"),
        ("# X\n\njoin A\n---- 4.0-4.2\nok\n---- 4.2+\nok\n", "two sections"),
        ("# X\n\nprofiles: 5.0\n", "not profiles"),
        ("# X\n\nbroker: what\n", "KEY=VALUE"),
        ("# X\n\nreal kafka: never\n", "REASON"),
        ("# X\n\nsettle\n----\nok\n\nprofiles: 4.0\n", "before the first command"),
    ],
)
def test_a_broken_file_is_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ScriptError, match=message):
        Script.read(written(tmp_path, text))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("jion A", "no command 'jion'"),
        ("join", "needs a member"),
        ("join A topcis=foo", "does not take topcis"),
        ("join A B", "does not take B"),
        ("join A (foo)", "needs a name"),
        ("join A instance=(a b)", "takes one value"),
        ("join A epoch=x", "takes a number"),
        ("join A timeout=3", "not a duration"),
        ("heartbeat A owned=foo", "not partitions"),
        ("heartbeat A owned=foo[0]", "no topic 'foo'"),
        ("commit nobody", "needs partitions"),
        ("topic shrink foo", "not 'shrink'"),
    ],
)
def test_a_command_that_makes_no_sense_is_refused(line: str, message: str) -> None:
    with pytest.raises(NotationError, match=message):
        run(ScenarioRun(CoreBackend("4.4", {})), line)


def test_a_file_with_such_a_command_names_the_place(tmp_path: Path) -> None:
    script = Script.read(written(tmp_path, GOOD + "\njoin\n----\nok\n"))
    with pytest.raises(ScriptError, match=r"X01_test\.txt:12: join needs a member"):
        check(script, "4.4")


def test_every_command_says_how_it_is_used() -> None:
    for name, handler in COMMANDS.items():
        assert f"\n    {name}" in (handler.__doc__ or ""), name


def test_arguments() -> None:
    found = Arguments.parse('join A topics=(foo "b r") regex="(?=x)" id="" rack=none flag')
    assert found.positional == ["A", "flag"]
    assert found.options == {
        "topics": ["foo", "b r"],
        "regex": "(?=x)",
        "id": "",
        "rack": None,
    }
    with pytest.raises(NotationError):
        Arguments.parse('join "open')


def test_durations() -> None:
    assert [duration_ms(text) for text in ("5ms", "2s", "10min", "1h", "7d")] == [
        5,
        2_000,
        600_000,
        3_600_000,
        604_800_000,
    ]


@given(
    st.dictionaries(
        st.from_regex(r"[a-z][a-z.-]{0,5}", fullmatch=True), st.sets(st.integers(0, 40))
    )
)
def test_partitions_are_read_as_they_are_written(assignment: dict[str, set[int]]) -> None:
    text = partitions_text(assignment)
    pieces = [] if text == "nothing" else text.split()
    again = {topic: set(numbers) for topic, numbers, _ in map(read_partitions, pieces)}
    assert again == assignment


NUMBERS = st.lists(st.integers(0, 30), max_size=4)


@given(early=NUMBERS, late=NUMBERS)
def test_pairs_always_expand_to_what_was_merged(early: list[int], late: list[int]) -> None:
    printed = {
        profile: [f"epoch {n}, assignment foo[{n}-9]" if n % 2 else f"({n})" for n in numbers]
        for profile, numbers in zip(PROFILES, (early, early, early, late, late), strict=True)
    }
    sections = merge(printed)
    for profile, lines in printed.items():
        (section,) = [text for profiles, text in sections if profile in profiles]
        assert [expand(line, profile) for line in section] == lines


def test_outputs_one_epoch_apart_become_pairs() -> None:
    printed = {
        profile: [f"A: epoch {epoch}, assignment foo[1-3]"]
        for profile, epoch in zip(PROFILES, (1, 1, 1, 2, 2), strict=True)
    }
    assert merge(printed) == [(PROFILES, ["A: epoch 1|2, assignment foo[1-3]"])]
