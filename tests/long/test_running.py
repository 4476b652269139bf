"""What runs, what is remembered, and what a run that was stopped does next; with fake commands."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.long.__main__ import main
from tests.long.job import Job, Part, in_turns
from tests.long.running import Run, play, tail
from tests.long.state import State

JOBS = (
    Job("seeds", "many", "-m nothing --seeds {}", ("0..9", "10..19", "20..29")),
    Job("once", "one", "-m nothing"),
)
PARTS = in_turns(JOBS)


@dataclass
class Stage:
    """Plays nothing; each part takes a minute of a clock that is not the machine's."""

    folder: Path
    fails: str = ""
    now_s: float = 0.0
    played: list[str] = field(default_factory=list[str])
    said: list[str] = field(default_factory=list[str])

    def play(self, part: Part, output: Path) -> str:
        self.played.append(part.name)
        self.now_s += 60
        output.write_text("".join(f"line {number}\n" for number in range(100)))
        return "exit code 3" if part.name == self.fails else ""

    def run(self, minutes: float | None = None) -> Run:
        state = State(self.folder / "state.json")
        run = Run(state, self.folder, lambda: self.now_s, self.said.append, self.play)
        run.go(PARTS, None if minutes is None else minutes * 60)
        return run


def test_the_first_part_of_each_job_comes_before_the_second_of_any(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    run = stage.run()
    assert stage.played == ["seeds 0..9", "once", "seeds 10..19", "seeds 20..29"]
    assert (run.passed, run.failed, run.left) == (PARTS, [], [])
    assert stage.said == [f"passed     60.0 s  {name}" for name in stage.played]


def test_a_run_that_was_stopped_goes_on_where_it_stopped(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    run = stage.run(minutes=1.5)
    assert [each.name for each in run.left] == ["seeds 10..19", "seeds 20..29"]
    assert run.summary([]) == (
        "2 passed, 0 failed, 2 left, 0 had passed before\nthe same command goes on with "
        "seeds 10..19"
    )
    stage.played.clear()
    assert not stage.run().left
    assert stage.played == ["seeds 10..19", "seeds 20..29"]


def test_what_failed_runs_again_and_the_others_go_on(tmp_path: Path) -> None:
    stage = Stage(tmp_path, fails="once")
    run = stage.run()
    assert [each.name for each in run.failed] == ["once"]
    assert stage.said[1].startswith("FAILED     60.0 s  once: exit code 3; the end of ")
    assert stage.said[2].splitlines() == [f"    line {number}" for number in range(60, 100)]
    assert "3 passed, 1 failed, 0 left" in run.summary([])
    stage.fails = ""
    stage.played.clear()
    stage.run()
    assert stage.played == ["once"]


def test_a_command_that_has_changed_has_not_passed(tmp_path: Path) -> None:
    Stage(tmp_path).run()
    state = State(tmp_path / "state.json")
    (part,) = Job("once", "one", "-m nothing --else").parts
    assert not state.has_passed(part)
    assert state.has_passed(PARTS[1])
    assert state.seconds(PARTS[1]) == 60


def test_a_part_that_is_interrupted_has_not_passed(tmp_path: Path) -> None:
    def interrupted(part: Part, output: Path) -> str:
        raise KeyboardInterrupt

    run = Run(State(tmp_path / "state.json"), tmp_path, lambda: 0.0, print, interrupted)
    with pytest.raises(KeyboardInterrupt):
        run.go(PARTS, None)
    assert run.left == PARTS
    assert not any(map(State(tmp_path / "state.json").has_passed, PARTS))


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text("[]")
    with pytest.raises(ValueError, match="says nothing about what has passed: remove it"):
        State(tmp_path / "state.json")


@pytest.mark.parametrize(
    ("arguments", "labels"), [("{}", ("",)), ("x", ("a",)), ("{}", ("a", "a")), ("{}", ())]
)
def test_labels_and_their_place_belong_together(arguments: str, labels: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"of bad need labels|bad has a \{\} in"):
        Job("bad", "", arguments, labels)


def python(code: str, most_s: float = 60.0) -> Part:
    return Part("python", "", (sys.executable, "-S", "-c", code), most_s)


def test_a_command_says_by_its_exit_code_what_came_of_it(tmp_path: Path) -> None:
    output = tmp_path / "output"
    assert not play(python("print('fine')"), output)
    assert tail(output) == "    fine"
    assert play(python("import sys; sys.exit('bad')"), output) == "exit code 1"
    assert tail(output) == "    bad"
    assert play(python("import os; os.abort()"), output) == f"exit code {-signal.SIGABRT}"


def test_a_command_that_hangs_is_ended(tmp_path: Path) -> None:
    """Also if it does not listen: what this process ignores it ignores, too."""
    hangs = python("import time; time.sleep(600)", most_s=0.1)
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        assert play(hangs, tmp_path / "output", patience_s=0.1) == "it hung: ended after 0.1 s"
    finally:
        signal.signal(signal.SIGTERM, before)


def test_what_a_command_leaves_behind_is_ended(tmp_path: Path) -> None:
    """A broker of one would disturb the next one."""
    code = (
        "import subprocess, sys;"
        "sleeps = [sys.executable, '-S', '-c', 'import time; time.sleep(600)'];"
        "print(subprocess.Popen(sleeps).pid)"
    )
    output = tmp_path / "output"
    assert not play(python(code), output)
    child = int(output.read_text())
    while _runs(child):
        pass  # the signal is on its way


def _runs(pid: int) -> bool:
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()  # killed, not yet waited for
    except (FileNotFoundError, ProcessLookupError):
        return False


FAKES = (
    Job("good", "prints", "-S -c print({})", ("1", "2")),
    Job("bad", "fails", "-S -c raise(SystemExit({}))", ("3",)),
)


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = ["--state", str(tmp_path / "deep" / "state.json")]
    assert main([*state, "--only", "good"], FAKES) == 0
    assert main([*state], FAKES) == 1
    output = tmp_path / "deep" / "outputs" / "bad-3.log"
    shown = re.sub(r" +\d+\.\d s", " N s", capsys.readouterr().out).splitlines()
    assert shown[:4] == [
        "passed N s  good 1",
        "passed N s  good 2",
        "2 passed, 0 failed, 0 left, 0 had passed before",
        f"FAILED N s  bad 3: exit code 3; the end of {output}:",
    ]
    assert "0 passed, 1 failed, 0 left, 2 had passed before" in shown
    assert main([*state, "--again", "--only", "go*", "--minutes", "0"], FAKES) == 0
    assert "0 passed, 0 failed, 2 left, 0 had passed before" in capsys.readouterr().out
    assert main([*state, "--list"], FAKES) == 0
    listed = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[-1].strip() for line in listed] == ["good: prints", "bad: fails"]
    with pytest.raises(SystemExit):
        main([*state, "--only", "other"], FAKES)
    assert "no job is called other: --list has them all" in capsys.readouterr().err


def test_a_run_that_is_told_to_end_ends_its_command(tmp_path: Path) -> None:
    """And says what is left."""
    pipe, program, state = (tmp_path / name for name in ("pipe", "waits.py", "state.json"))
    os.mkfifo(pipe)
    program.write_text(
        f"import os, time\nwith open({str(pipe)!r}, 'w') as pipe:\n"
        "    pipe.write(str(os.getpid()))\ntime.sleep(600)\n"
    )
    code = (
        "import sys; from tests.long.__main__ import main; from tests.long.job import Job; "
        f"sys.exit(main(['--state', {str(state)!r}], [Job('waits', '', {str(program)!r})]))"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        child = int(pipe.read_text())  # waits until it has begun
        process.terminate()
        said, _ = process.communicate(timeout=60)
    assert process.returncode == 143
    assert said.splitlines()[0] == "0 passed, 0 failed, 1 left, 0 had passed before"
    assert not _runs(child)
