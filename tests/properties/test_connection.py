"""The core of a connection under any bytes, split anywhere, at any time.

``ConnectionHarness`` objects to what must never be wanted: anything after the end, a second request
before the first is answered, an answer before the last is taken, a deadline that is not met.
"""

from __future__ import annotations

import random
import struct
from itertools import pairwise
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from mock_coordinator.connection import ConnectionSettings
from tests.fuzz.random_messages import mutated
from tests.unit.mock_coordinator.connection.connection_harness import (
    PLAIN,
    SASL,
    ConnectionHarness,
    metadata,
    request,
    token,
)

SETTINGS = ConnectionSettings(
    max_frame_bytes=2000, max_sasl_frame_bytes=200, idle_ms=None, failed_login_delay_ms=50
)
HURRIED = ConnectionSettings(
    max_frame_bytes=2000, max_sasl_frame_bytes=200, idle_ms=300, failed_login_delay_ms=50
)


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


login = st.just(request("SaslHandshake", 1, mechanism="PLAIN") + token(b"\0alice\0open sesame"))
pieces = st.one_of(
    st.integers(0, 1000).map(metadata),
    login,
    st.builds(
        lambda mechanism, version: request("SaslHandshake", version, mechanism=mechanism),
        st.sampled_from(["PLAIN", "SCRAM-SHA-256", "GSSAPI"]),
        st.integers(0, 1),
    ),
    st.sampled_from([b"\0alice\0open sesame", b"\0alice\0no", b"n,,n=alice,r=abc"]).map(token),
    st.sampled_from([b"\0alice\0open sesame", b"", b"\0\0"]).map(framed),
    st.integers(-5, 2100).map(lambda size: struct.pack(">i", size)),
    st.binary(max_size=40),
    st.binary(max_size=40).map(framed),
    st.builds(
        lambda number, seed: mutated(metadata(number), random.Random(seed)),
        st.integers(0, 9),
        st.integers(0, 999),
    ),
)
streams = st.lists(pieces, max_size=8).map(b"".join)
factories = st.sampled_from([PLAIN, SASL])


def split(data: bytes, at: list[int]) -> list[bytes]:
    cuts = sorted({0, len(data), *(each % (len(data) + 1) for each in at)})
    return [data[low:high] for low, high in pairwise(cuts)]


def effect(factory: Any, parts: list[bytes], *, is_patient: bool) -> Any:
    """What a broker and a client see in the end. ``is_patient``: each part is served to its end
    before the next one comes."""
    line = ConnectionHarness(SETTINGS, factory)
    for part in parts:
        line.feed(part)
        if is_patient:
            line.turns()
    line.turns()
    line.advance(50)
    line.turns()
    line.end()
    line.turns()
    return line.submitted, bytes(line.written), line.closed


@given(factories, streams, st.lists(st.integers(0, 2000), max_size=20), st.booleans())
def test_where_the_bytes_are_split_changes_nothing(
    factory: Any, data: bytes, at: list[int], is_patient: bool
) -> None:
    whole = effect(factory, [data], is_patient=True)
    assert effect(factory, split(data, at), is_patient=is_patient) == whole
    assert whole[2] is not None, "who has said everything is closed"


events = st.one_of(
    st.tuples(st.just("feed"), st.integers(1, 300)),
    st.tuples(st.just("advance"), st.integers(0, 400)),
    st.sampled_from(["answer", "take", "turn", "end", "lost", "close"]).map(lambda name: (name, 0)),
    st.sampled_from(["answer", "take", "turn"]).map(lambda name: (name, 0)),
)


@settings(max_examples=300)
@example(  # a login by bare tokens, the answer to which is an empty frame
    factory=SASL,
    is_tls=False,
    is_prompt=True,
    data=request("SaslHandshake", 0, mechanism="PLAIN") + framed(b"\0alice\0open sesame"),
    happening=[("feed", 47), ("turn", 0)],
)
@given(factories, st.booleans(), st.booleans(), streams, st.lists(events, max_size=40))
def test_at_any_time_anything_may_happen(
    factory: Any, is_tls: bool, is_prompt: bool, data: bytes, happening: list[tuple[str, int]]
) -> None:
    line = ConnectionHarness(
        HURRIED, factory, is_tls=is_tls, is_prompt=is_prompt, is_greedy=is_prompt
    )
    is_ended = False
    for name, size in happening:
        if name == "feed" and not is_ended and line.closed is None:
            if is_tls:
                line.perform(line.core.secured(line.now_ms, line.authenticator))
                is_tls = False
            line.feed(data[:size])
            data = data[size:]
        elif name == "advance":
            line.advance(size)
        elif name == "end":
            is_ended = True
            line.end()
        elif name == "lost":
            line.core.lost()
        elif name == "close":
            line.perform(line.core.closed_by_broker("enough"))
        elif name in ("answer", "take", "turn"):
            getattr(line, name)()
    asked = [each.correlation for each in line.submitted]
    answered = [number for number in line.correlations if number in asked]
    if factory is PLAIN:
        assert answered == asked[: len(answered)]
    line.turns()
    line.advance(10_000)
    line.turns()
    line.advance(10_000)
    assert line.core.deadline_ms is None, "what nothing happens on is closed, whatever it waits for"
