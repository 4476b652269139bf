"""Which texts are addresses of bootstrap servers."""

from __future__ import annotations

import pytest

from kip848_client.core.bootstrap import bootstrap_addresses


@pytest.mark.parametrize(
    ("servers", "expected"),
    [
        ("localhost", [("localhost", 9092)]),
        ("a:1,b", [("a", 1), ("b", 9092)]),
        (" a:1 , b:2 ,", [("a", 1), ("b", 2)]),
        (["a:1", "b:2", "a:1"], [("a", 1), ("b", 2)]),
        (("a:1",), [("a", 1)]),
        ("10.0.0.1:65535", [("10.0.0.1", 65535)]),
        ("[::1]:9094,[::1],::1", [("::1", 9094), ("::1", 9092)]),
        ("[fe80::1%eth0]:1", [("fe80::1%eth0", 1)]),
    ],
)
def test_addresses(servers: object, expected: list[tuple[str, int]]) -> None:
    assert list(bootstrap_addresses(servers)) == expected


@pytest.mark.parametrize(
    ("servers", "says"),
    [
        ("localhost:abc", "'localhost:abc': a port is a number from 1 to 65535, not 'abc'"),
        ("localhost:", "not ''"),
        ("localhost:0", "not '0'"),
        ("localhost:-1", "not '-1'"),
        ("localhost:65536", "not '65536'"),
        ("localhost:" + "9" * 5_000, "a port is a number"),
        ("localhost:\u0663", "a port is a number"),
        (":9092", "is not host"),
        ("a b:9092", "is not host"),
        ("a\x00:9092", "is not host"),
        ("\ud800:9092", "is not host"),
        ("a:1:2", "is not host"),
        ("[::1", "is not host"),
        ("[::1]9092", "is not host"),
        ("[::1]:", "not ''"),
        ("[a]:1", "is not host"),
        ("PLAINTEXT://a:1", "names a protocol.*security_protocol"),
        (",", "at least one"),
        ("", "at least one"),
        ([], "at least one"),
        (b"localhost:1", "not bytes"),
        ([b"localhost:1"], "not bytes"),
        ([("localhost", 1)], "not tuple"),
        (None, "not NoneType"),
        (5, "not int"),
        (iter(["a:1"]), "not list_iterator"),
    ],
)
def test_what_is_no_address(servers: object, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        bootstrap_addresses(servers)
