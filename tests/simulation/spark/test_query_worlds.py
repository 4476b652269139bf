"""Queries in many worlds: no record is left out, and none is read again without a reason.

``python -m tests.simulation.spark --seeds 0..1999`` plays more.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, NamedTuple

import pytest

from kip848_client.spark.source.core import _begin, _ownership
from kip848_client.spark.source.core._exclusive_plan import ExclusivePlan
from kip848_client.spark.source.core._shared_plan import SharedPlan
from tests.simulation.spark.ledger import Violation
from tests.simulation.spark.world import DISASTERS, play
from tests.support.planting import Plant, plant

_QUICK: Final = 200
_CHUNKS: Final = range(10)
_MORE: Final = pytest.mark.everything("more of the same dice")


@pytest.mark.parametrize(
    "chunk", [pytest.param(chunk, marks=() if chunk < 1 else _MORE) for chunk in _CHUNKS]
)
def test_every_record_is_read_or_committed_past(chunk: int) -> None:
    batches = 0
    for seed in range(chunk * _QUICK, (chunk + 1) * _QUICK):
        batches += len(play(seed).query.offsets)
    assert batches > 2 * _QUICK


def test_the_seeds_take_everything_that_can_happen() -> None:
    taken = Counter[str]()
    for seed in range(_QUICK):
        taken += play(seed).happened
    assert min(taken[name] for name in (*DISASTERS, "crash", "hand_over")) >= 5, taken


class Bug(NamedTuple):
    """A rule that does not hold, and the promise that it breaks."""

    plant: Plant
    breaks: str


_AGREED: Final = "_agreed(tp, position, there, counts, me, is_running=is_running)"

BUGS: Final = {
    "a member begins at the group's offset alone": Bug(
        Plant(_begin, "shared_begin", _AGREED, "counts.offset"), "Repeated"
    ),
    "a member begins at its checkpoint alone": Bug(
        Plant(_begin, "shared_begin", _AGREED, "position.at"), "ReadOfOthers"
    ),
    "the later of both counts, by any author": Bug(
        Plant(_begin, "_agreed", "ours = me.wrote(group)", "ours = False"), "Unread"
    ),
    "a topic of the same name is the same": Bug(
        Plant(
            _begin,
            "_is_other_topic",
            "return known and position.topic_id != log.topic_id",
            "return False and known",
        ),
        "Unread",
    ),
    "a repeated batch is without what the query has committed": Bug(
        Plant(_begin, "left_by_others", "me.wrote(offset) or ", ""), "Unread"
    ),
    "a repeated batch is without what others own": Bug(
        Plant(
            SharedPlan,
            "again",
            "left_by_others(self.kept, spans, group, self.me)",
            "{tp: span for tp, span in spans.items() if tp in self.owned}",
        ),
        "Unread",
    ),
    "a repeated batch has all that was planned": Bug(
        Plant(SharedPlan, "again", "left_by_others(self.kept, spans, group, self.me)", "spans"),
        "ReadOfOthers",
    ),
    "an exclusive batch is repeated without what others have committed": Bug(
        Plant(ExclusivePlan, "again", 'if self.kept.ownership == "exclusive":', "if False:"),
        "Unread",
    ),
    "a batch is committed to the group when it is planned": Bug(
        Plant(
            SharedPlan,
            "next",
            "self.kept = self.in_hand = self._manifest(ranges)",
            "self.to_commit |= {tp: end for tp, (_, end) in ranges.items()}\n"
            "        self.kept = self.in_hand = self._manifest(ranges)",
        ),
        "Unread",
    ),
    "a batch in hand is committed when its partition comes back": Bug(
        Plant(SharedPlan, "assigned", "if tp not in busy and (", "if ("), "Unread"
    ),
    "partitions that were never read are not remembered": Bug(
        Plant(_ownership, "first_manifest", "unread = frozenset(places)", "unread = frozenset()"),
        "Unread",
    ),
    "a manifest has only what the member owns": Bug(
        Plant(SharedPlan, "_manifest", "ends = {**known, **self.owned}", "ends = dict(self.owned)"),
        "Repeated",
    ),
}


@pytest.mark.parametrize(("name", "bug"), BUGS.items(), ids=BUGS)
@pytest.mark.timeout(120)
def test_a_bug_is_found(monkeypatch: pytest.MonkeyPatch, name: str, bug: Bug) -> None:
    plant(monkeypatch, bug.plant)
    found = Counter[str]()
    for seed in range(1_000):
        try:
            play(seed)
        except Violation as err:
            found[str(err).split(":")[0]] += 1
            if bug.breaks in found:
                return
    pytest.fail(f"{name}: no seed breaks {bug.breaks}, but {dict(found)}")
