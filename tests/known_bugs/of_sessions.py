"""Fetch sessions, topic ids, and whole clusters."""

from __future__ import annotations

from typing import Final

from kip848_client.core.cluster import Leaders
from kip848_client.core.fetch._answers import Answers
from kip848_client.core.fetch._partition_errors import PartitionErrors
from kip848_client.core.fetch._planner import Planner
from kip848_client.core.fetch._sessions import FetchSession
from kip848_client.core.fetch._topics import Topics
from kip848_client.core.group._core import GroupCore
from kip848_client.error_codes import ErrorCode
from kip848_client.runtime._topics import TopicDirectory
from tests.known_bugs.rows import KnownBug, Proof
from tests.support.planting import Plant
from tests.unit.core.fetch import (
    test_core_pace,
    test_core_records,
    test_core_sessions,
    test_core_topics,
)
from tests.unit.core.group import test_group_core
from tests.unit.mock_coordinator import test_sessions_by_id
from tests.unit.runtime import test_topics

__all__ = ["CLUSTERS", "SESSIONS", "TOPICS"]

_REFUSED: Final = Plant(
    FetchSession,
    "_refused",
    "self._reset(_NO_SESSION if over else self._session_id)",
    "self._reset(_NO_SESSION) if over else None",
)

SESSIONS: Final = (
    KnownBug(
        "KAFKA-17182",
        "All partitions of a broker are buffered, and the client sends a request that forgets "
        "them all: the broker closes the session",
        "sends nothing to that broker",
        (
            Proof(
                test_core_sessions.test_nothing_is_sent_while_all_partitions_of_a_broker_are_full,
                (
                    Plant(
                        Planner, "plan", "node.fetch is None and node.ring", "node.fetch is None"
                    ),
                    Plant(Planner, "due_ms", "node.fetch is None and node.ring", "not node.fetch"),
                ),
            ),
        ),
    ),
    KnownBug(
        "platformatic #315; sarama #1644",
        "Each fetch opens a session, and they fill the session cache of the whole cluster",
        "opens one session per broker",
        (
            Proof(
                test_core_sessions.test_one_session_serves_a_thousand_fetches,
                (Plant(FetchSession, "_opened", "self._epoch = _FIRST_EPOCH", "pass"),),
            ),
        ),
    ),
    KnownBug(
        "platformatic #321",
        "A revoked partition stays in the session: its data keeps arriving and is returned",
        "forgets it in the next request, and drops its data",
        (
            Proof(
                test_core_sessions.test_what_is_taken_away_is_forgotten_and_its_data_dropped,
                (
                    Plant(
                        FetchSession,
                        "plan_changes",
                        "tuple([key for key, want in differs if want is None])",
                        "()",
                    ),
                ),
            ),
        ),
    ),
    KnownBug(
        "kafka-python #2575",
        "The session keeps an old offset: the same batch is fetched repeatedly and skipped",
        "sends every offset that has changed",
        (
            Proof(
                test_core_sessions.test_a_request_names_what_has_changed_only,
                (
                    Plant(
                        FetchSession,
                        "plan_changes",
                        "if known.get(key) != want]",
                        "if (key in known) != (want is not None)]",
                    ),
                ),
            ),
        ),
    ),
    KnownBug(
        "franz-go #535; franz-go #546",
        "A topic is forgotten by the zero id, and brokers before 4.3 fail the whole request",
        "forgets topics by the id with which they were added",
        (
            Proof(
                test_core_sessions.test_a_topic_is_forgotten_by_the_id_it_was_added_with,
                (
                    Plant(
                        FetchSession,
                        "plan_changes",
                        "self._epoch, add, forget)",
                        "self._epoch, add, tuple((ZERO_TOPIC_ID, each[1]) for each in forget))",
                    ),
                ),
            ),
        ),
        (test_sessions_by_id.TestZeroIds.test_forgetting_one_fails_the_request,),
    ),
    KnownBug(
        "redpanda #27749",
        "After INVALID_FETCH_SESSION_EPOCH the client sends the same epoch repeatedly",
        "closes the session and opens another one in the same request",
        (
            Proof(
                test_core_sessions.test_a_session_that_the_broker_refuses_is_opened_anew,
                (_REFUSED,),
                (ErrorCode.INVALID_FETCH_SESSION_EPOCH,),
            ),
        ),
    ),
    KnownBug(
        "KAFKA-8052; spring-cloud-stream #2209",
        "After INVALID_FETCH_SESSION_EPOCH records are lost or duplicated",
        "sends all partitions with their offsets again",
        (
            Proof(
                test_core_sessions.test_a_session_that_the_broker_refuses_is_opened_anew,
                (
                    Plant(
                        FetchSession,
                        "plan_changes",
                        "add = tuple(everything())",
                        "add = tuple(w._replace(offset=w.offset // 2) for w in everything())",
                    ),
                ),
                (ErrorCode.INVALID_FETCH_SESSION_EPOCH,),
            ),
        ),
    ),
    KnownBug(
        "franz-go's source",
        "After an unknown top-level error the next request is sent at once",
        "waits before the next request, longer each time",
        (
            Proof(
                test_core_pace.test_a_request_that_is_refused_again_and_again_is_paced,
                (Plant(Answers, "_whole", "if effect.rest:", "if False:"),),
                (4_711,),
            ),
        ),
    ),
    KnownBug(
        "Dekaf #1002",
        "A partition that is missing in an answer counts as not at its end",
        "keeps its last known state; callers compare position and high watermark",
        (
            Proof(
                test_core_records.test_what_an_answer_leaves_out_is_as_it_was,
                (
                    Plant(
                        Answers,
                        "_begin",
                        "return event.answer.partitions",
                        "for each in node.ring.values():\n"
                        "            each.high_watermark = None\n"
                        "        return event.answer.partitions",
                    ),
                ),
            ),
        ),
    ),
    KnownBug(
        "real brokers",
        "The connection breaks during a fetch, and the next request has the old or the next "
        "epoch, although it is unknown whether the broker received the request",
        "closes the session and opens another one",
        (
            Proof(
                test_core_sessions.test_after_a_lost_answer_the_session_is_opened_anew,
                (Plant(FetchSession, "lost", "if sent:", "if False:"),),
            ),
        ),
    ),
)

TOPICS: Final = (
    KnownBug(
        "franz-go #1336; franz-go #1364",
        "A topic is created again, and the client keeps requesting the deleted id in a loop",
        "requests metadata, with pauses, until the group assigns the new one",
        (
            Proof(
                test_core_topics.test_the_group_says_when_a_topic_is_another_one,
                (Plant(Topics, "_on_gone", "self._leaders.drop(topic_id)", "pass"),),
                (ErrorCode.UNKNOWN_TOPIC_ID,),
            ),
        ),
    ),
    KnownBug(
        "franz-go #1426",
        "Offsets of the old topic are committed by name to the new topic",
        "refuses such a commit",
        (
            Proof(
                test_group_core.test_a_topic_that_was_created_again_is_not_committed_to,
                (Plant(GroupCore, "_is_recreated", "return meant", "return 0 and meant"),),
            ),
            Proof(
                test_group_core.test_a_topic_by_hand_that_was_created_again_is_not_committed_to,
                (Plant(GroupCore, "_id_now", " or self._read_id(tp)", ""),),
            ),
            Proof(
                test_group_core.test_a_topic_by_hand_that_was_created_again_is_not_committed_to,
                (Plant(GroupCore, "_is_recreated", "meant = each.get(tp, meant)", "pass"),),
            ),
        ),
    ),
    KnownBug(
        "franz-go #357; franz-go #359",
        "A topic was just created, some brokers do not know its id yet, and the user gets an error",
        "retries, and logs this after ten seconds",
        (
            Proof(
                test_core_topics.test_a_new_topic_that_its_broker_does_not_know_yet_is_waited_for,
                (
                    Plant(
                        PartitionErrors, "rest", "partition.troubled_since_ms >= QUIET_MS", "0 >= 0"
                    ),
                ),
            ),
        ),
    ),
    KnownBug(
        "franz-go #1404; franz-go #1429",
        "A deleted topic causes UNKNOWN_TOPIC_OR_PARTITION in a session, INCONSISTENT_TOPIC_ID if "
        "it was created again, and UNKNOWN_TOPIC_ID in a new session: the client does not handle "
        "one of them",
        "handles all three in the same way",
        tuple(
            Proof(
                test_core_topics.test_the_group_says_when_a_topic_is_another_one,
                (
                    Plant(
                        Answers,
                        "_on_error",
                        "rule = reaction(code)",
                        f"rule = reaction(4_711 if code == {code:d} else code)",
                    ),
                ),
                (code,),
            )
            for code in (
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                ErrorCode.INCONSISTENT_TOPIC_ID,
                ErrorCode.UNKNOWN_TOPIC_ID,
            )
        ),
        (
            test_sessions_by_id.TestTopicsThatAreGone.test_a_session_remembers_the_name,
            test_sessions_by_id.TestTopicsThatAreGone.test_a_new_session_does_not,
        ),
    ),
    KnownBug(
        "librdkafka #4806",
        "A broker accepts topic ids, but its metadata has none, and the client fetches zero ids",
        "waits until the id is known",
        (
            Proof(
                test_core_topics.test_a_topic_that_has_no_id_yet_is_waited_for,
                (
                    Plant(Topics, "learn", "told.topic_id == ZERO_TOPIC_ID", "False"),
                    Plant(Leaders, "learn", " or topic_id == ZERO_TOPIC_ID", ""),
                    Plant(FetchSession, "plan_changes", "want.topic_id == ZERO_TOPIC_ID", "False"),
                ),
            ),
        ),
    ),
)

CLUSTERS: Final = (
    KnownBug(
        "librdkafka #5178",
        "The time between two regular refreshes counts as time without metadata: the first "
        "failure causes a new bootstrap",
        "counts from the first unanswered request",
        (
            Proof(
                test_topics.test_brokers_that_are_of_no_use_for_long_are_given_up,
                (
                    Plant(
                        TopicDirectory,
                        "_send",
                        "self._recovery.usable()",
                        "self._recovery.usable()\n"
                        "        self._recovery.asked(self._clock.now_ms())",
                    ),
                ),
            ),
        ),
    ),
    KnownBug(
        "librdkafka #5301",
        "An answer without brokers counts as metadata",
        "does not count it",
        (
            Proof(
                test_topics.test_an_answer_without_brokers_is_none,
                (Plant(TopicDirectory, "_send", "or not answer.brokers:", "or False:"),),
            ),
        ),
    ),
    KnownBug(
        "librdkafka #5605",
        "The late answer of an earlier broker undoes the new bootstrap",
        "ignores it",
        (
            Proof(
                test_topics.test_a_late_answer_of_a_former_broker_does_not_count,
                (Plant(TopicDirectory, "_send", "if beginning != self._beginnings:", "if False:"),),
            ),
        ),
    ),
)
