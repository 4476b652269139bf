"""Topics that grow, go and come while they are read."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Final

from kip848_client import TopicPartition
from tests.integration.cluster import eventually
from tests.situations.diary import Verdict, What
from tests.situations.situation import Situation

__all__ = ["created_again", "new_topics_for_a_pattern", "partitions_are_added"]

_WAIT_S: Final = 60.0


async def partitions_are_added(situation: Situation) -> Verdict:
    """What is written to new partitions from their first moment on is read."""
    async with situation.fed():
        for n in range(2):
            await situation.start(f"m{n}")
        await situation.shared(2, 2)
        await situation.flows()
        await situation.admin.create_partitions({situation.topic: 7})
        situation.feed.targets += situation.of_topic(situation.topic, range(4, 7))
        await eventually(lambda: _is_spread(situation, 7), _WAIT_S)
        await situation.flows()
        verdict = await situation.finish()
    assert (verdict.again, verdict.losers) == (0, ())
    assert not situation.feed.refused
    return verdict


def _is_spread(situation: Situation, total: int) -> bool:
    sizes = [len(each.consumer.assignment()) for each in situation.applications]
    return sum(sizes) == total and max(sizes) - min(sizes) <= 1


async def created_again(situation: Situation) -> Verdict:
    """A topic is deleted and created again while it is read and written: of the new one everything
    is read from its first record on, and of the old one nothing twice."""
    async with situation.fed():
        for n in range(2):
            await situation.start(f"m{n}")
        await situation.shared(2, 2)
        await situation.flows()
        await situation.admin.delete_topics([situation.topic])
        if situation.by_name:
            # An offset of the old one that is committed late would be taken for one of the new one.
            await situation.shared(0, 0)
        await situation.create(situation.topic, situation.partitions)
        await eventually(lambda: _is_read_again(situation), _WAIT_S)
        await situation.flows()
        await situation.feed.stop()
        verdict = await situation.finish(await situation.content(situation.topic))
    assert verdict.again == 0
    return replace(verdict, overlaps=())  # one had the old topic's, another one gets the new one's


def _is_read_again(situation: Situation) -> bool:
    """Whether each partition was read from its first record on, twice."""
    firsts = Counter(
        each.tp for each in situation.entries if each.what is What.READ and each.offset == 0
    )
    return all(firsts[tp] == 2 for tp in situation.feed.targets)


async def new_topics_for_a_pattern(situation: Situation) -> Verdict:
    """Topics that come later and match the pattern are read from their first record on; one that
    does not match is not, and one that goes is no error."""
    first, second, other = (f"{situation.topic}.{name}" for name in ("one", "two", "three"))
    async with situation.fed():
        pattern = f"{situation.topic}(\\.(one|two))?"
        await situation.start("m0", pattern=pattern)
        await situation.start("m1", pattern=pattern)
        await situation.shared(2, 2)
        await situation.flows()
        for topic, partitions in ((first, 3), (second, 1), (other, 1)):
            await situation.create(topic, partitions)
        situation.feed.targets += situation.of_topic(first, range(3))
        situation.feed.targets += situation.of_topic(second, range(1))
        await situation.shared(4, 4)
        await situation.flows()
        situation.feed.targets[:] = situation.of_topic(situation.topic, range(4))
        await situation.flows()  # what was on its way is there
        await situation.admin.delete_topics([second])
        await eventually(lambda: not _have(situation, TopicPartition(second, 0)), _WAIT_S)
        await situation.flows()
        verdict = await situation.finish()
    assert other not in {each.tp.topic for each in situation.entries}
    assert verdict.again == 0
    assert [str(error) for each in situation.applications for error in each.errors] == []
    return verdict


def _have(situation: Situation, tp: TopicPartition) -> bool:
    return any(tp in each.consumer.assignment() for each in situation.applications)
