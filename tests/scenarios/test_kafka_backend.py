"""How long a real broker is waited for: a slow answer must not be taken for none."""

from __future__ import annotations

from typing import Any, cast

import pytest

from kip848_client.core.wire.messages.classic_group import JoinGroupRequest, JoinGroupResponse
from kip848_client.error_codes import ErrorCode
from tests.scenarios.kafka_backend import KafkaBackend, KafkaSession
from tests.scenarios.runner import play
from tests.scenarios.script import Script

SLOW_S = 2.0
"""What a broker may take on a busy machine."""


class SlowConnection:
    """Answers JoinGroup with a member id, for whoever waits long enough."""

    def send(self, message: Any, version: int) -> int:
        assert isinstance(message, JoinGroupRequest)
        del version
        return 1

    def has_answer(self, timeout_s: float = 0) -> bool:
        return timeout_s >= SLOW_S

    def receive(self, api: Any, version: int, correlation: int) -> JoinGroupResponse:
        del api, version, correlation
        return JoinGroupResponse(error_code=ErrorCode.MEMBER_ID_REQUIRED, member_id="drawn")

    def close(self) -> None:
        """Nothing."""


class LateConnection(SlowConnection):
    """Answers when nobody waits any more."""

    def has_answer(self, timeout_s: float = 0) -> bool:
        return timeout_s == 0


class SlowSession:
    """As much of a broker as JoinGroup needs."""

    class kafka:  # noqa: N801 - stands for an attribute
        profile = "4.4"
        connect = SlowConnection

    class log:  # noqa: N801 - stands for an attribute
        records = ()
        read = staticmethod(lambda: None)


class LateSession(SlowSession):
    """The same, with late answers."""

    class kafka(SlowSession.kafka):  # noqa: N801 - stands for an attribute
        connect = LateConnection


def played(
    output: str, tmp_path: Any, session: type[SlowSession] = SlowSession
) -> tuple[list[str] | None, KafkaBackend]:
    path = tmp_path / "X01_slow.txt"
    path.write_text(f"# X01: slow\n#\n# none\n\njoin-group A topics=foo\n----\n{output}\n")
    backend = KafkaBackend(cast("KafkaSession", session()))
    printed = play(Script.read(path), backend)
    return next(iter(printed.values())), backend


def test_an_answer_that_the_file_has_is_waited_for(tmp_path: Any) -> None:
    """The id that it brings is the next member's in the comparison; were it missed, all further
    members would get the ids of others there, and with them other partitions."""
    lines, backend = played("A: MEMBER_ID_REQUIRED (79)", tmp_path)
    assert lines == ["A: MEMBER_ID_REQUIRED (79)"]
    assert backend.member_ids == ["drawn"]


def test_who_waits_in_the_file_is_not_waited_for(tmp_path: Any) -> None:
    lines, backend = played("A: waits", tmp_path)
    assert lines == ["A: waits"]
    assert backend.member_ids == [None]
    backend.require_nobody_answered()


def test_who_waits_in_the_file_and_is_answered_after_all_is_noticed(tmp_path: Any) -> None:
    lines, backend = played("A: waits", tmp_path, LateSession)
    assert lines == ["A: waits"]
    with pytest.raises(AssertionError, match="answered after the last command"):
        backend.require_nobody_answered()
    with pytest.raises(AssertionError, match="answered unnoticed"):
        backend.send("A", JoinGroupRequest(), 9)
