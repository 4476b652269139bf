"""What is too much for one answer or one batch of records, and topics asked for in any order."""

from __future__ import annotations

from tests.support.odd_requests.talk import Talk

__all__ = ["ask_for_topics_oddly", "join_oddly"]

_TOO_MANY = 40_000


def join_oddly(talk: Talk) -> None:
    """A member that subscribes to so many topics that its record fits into no batch."""
    names = [f"a-topic-with-a-rather-long-name-{number}" for number in range(_TOO_MANY)]
    for what, subscribed in (("too many", names), ("few", names[:3])):
        talk.ask(
            what,
            "ConsumerGroupHeartbeat",
            1,
            group_id="large",
            member_id="m",
            member_epoch=0,
            rebalance_timeout_ms=1000,
            subscribed_topic_names=subscribed,
            topic_partitions=[],
        )
        talk.ask(what, "ConsumerGroupDescribe", 0, group_ids=["large"])
    talk.ask("too many", "OffsetDelete", 0, group_id="large", topics=[])


def ask_for_topics_oddly(talk: Talk) -> None:
    """Metadata of more topics than Kafka keeps in the order in which they are asked for."""
    names = ("two", "no", "one", "b", "strict", "a b", "", "c", "one")
    for count in range(len(names) + 1):
        topics = [{"name": name} for name in names[:count]]
        for version in talk.versions("Metadata", 4, 12):
            answer = talk.quietly(
                "Metadata", version, topics=topics, allow_auto_topic_creation=False
            )
            found = [(topic.name, topic.error_code) for topic in answer.topics]
            talk.note(f"{count} topics v{version}", found)
