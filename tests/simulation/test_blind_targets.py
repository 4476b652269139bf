"""The one case in which partitions may be in nobody's hands: what is it, and what is not."""

from __future__ import annotations

from mock_coordinator.sim.blind_targets import BlindTargets
from mock_coordinator.sim.recorded_groups import RecordedGroups
from tests.unit.mock_coordinator.groups._group_harness import EVERY_PROFILE, GroupHarness, parts


class Story:
    """A group, whose records are read step by step."""

    def __init__(self, profile: str) -> None:
        self.harness = GroupHarness(profile)
        self.groups = RecordedGroups(self.harness.profile.first_group_epoch)
        self.targets = BlindTargets()
        self._read = 0
        self.harness.join("M")
        self.harness.join("N")
        self.harness.settle("M", "N")
        self.is_blind()

    def is_blind(self) -> bool:
        """Whether the target is, all that was written since being one step."""
        written = self.harness.groups.records[self._read :]
        self._read += len(written)
        self.targets.written(self.groups, written)
        for record in written:
            self.groups.note(record)
        return self.targets.has("g", self.groups.group("g"))


@EVERY_PROFILE
def test_a_pattern_that_comes_while_a_target_is_due(profile: str) -> None:
    story = Story(profile)
    harness = story.harness
    harness.beat("N", -1)  # the epoch moves, and the next request computes the target
    assert not story.is_blind()
    harness.join("A", None, regex="nothing")
    assert story.is_blind()
    harness.pass_ms(30_000)
    harness.settle("A", "M")
    assert (harness.target("A"), harness.target("M")) == ({}, {})
    assert story.is_blind()
    harness.join("B")  # until the epoch moves again
    assert not story.is_blind()
    assert harness.target("M")


@EVERY_PROFILE
def test_a_pattern_that_comes_while_no_target_is_due(profile: str) -> None:
    story = Story(profile)
    story.harness.join("A", None, regex="nothing")
    assert not story.is_blind()
    assert story.harness.target("M")


@EVERY_PROFILE
def test_names_that_come_while_a_target_is_due(profile: str) -> None:
    story = Story(profile)
    story.harness.beat("N", -1)
    assert not story.is_blind()
    story.harness.join("A", ("bar",))
    assert not story.is_blind()
    assert story.harness.target("A") == parts(bar=range(3))


@EVERY_PROFILE
def test_a_pattern_that_is_one_of_several_comes_while_a_target_is_due(profile: str) -> None:
    """The others differed before: Kafka knows."""
    story = Story(profile)
    story.harness.join("O", ("bar",))
    story.harness.settle("M", "N", "O")
    story.is_blind()
    story.harness.beat("N", -1)
    assert not story.is_blind()
    story.harness.join("A", None, regex="nothing")
    assert not story.is_blind()
    assert story.harness.target("M")
