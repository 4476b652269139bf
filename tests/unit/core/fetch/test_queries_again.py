"""ListOffsets that is asked again: what of the earlier attempts still counts."""

from __future__ import annotations

from kip848_client.core.fetch._commands import ListOffsets, OffsetsFound, OffsetsNotFound
from kip848_client.core.fetch._events import OffsetsNotListed
from kip848_client.core.fetch._model import LATEST
from kip848_client.error_codes import ErrorCode
from tests.unit.core.fetch._looking import Looking, listed, tp

A = tp(0)


def test_refusals_of_different_kinds_are_not_in_a_row() -> None:
    look = Looking({0: 1})
    look.ask({A: LATEST})
    for code in (
        ErrorCode.INVALID_REQUEST,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.INVALID_REQUEST,
    ):
        look.refuse(code)
        look.advance(1_000)
    look.answer({A: listed(4)})
    assert not look.all(OffsetsNotFound)
    assert len(look.all(OffsetsFound)) == 1


def test_refusals_with_a_lost_answer_between_them_are_not_in_a_row() -> None:
    look = Looking({0: 1})
    look.ask({A: LATEST})
    look.refuse(ErrorCode.INVALID_REQUEST)
    look.advance(1_000)
    look.lose(OffsetsNotListed(look.newest(ListOffsets).query, "connection lost"))
    look.advance(1_000)
    look.refuse(ErrorCode.INVALID_REQUEST)
    assert not look.all(OffsetsNotFound)


def test_the_time_that_a_broker_lags_behind_begins_anew_after_another_refusal() -> None:
    look = Looking({0: 1})
    look.ask({A: LATEST})
    look.refuse(ErrorCode.UNKNOWN_LEADER_EPOCH)
    look.advance(1_000)
    look.refuse(ErrorCode.OFFSET_NOT_AVAILABLE)
    look.advance(20_000)
    look.wanted.clear()
    look.refuse(ErrorCode.UNKNOWN_LEADER_EPOCH)
    assert not look.wanted, "the leader that is known is not doubted, nor asked about"


def test_what_a_new_leader_was_asked_is_not_asked_again_when_metadata_confirms_it() -> None:
    look = Looking({0: 1})
    look.ask({A: LATEST})
    look.refuse(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    look.lead({0: 2}, epoch=2)
    look.lead({0: 2}, epoch=2)
    look.answer({A: listed(4)})
    assert len(look.all(OffsetsFound)) == 1
    assert [each.node for each in look.all(ListOffsets)] == [1, 2]
