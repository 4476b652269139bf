"""Which patterns are refused and in which words, as RE2/J 1.8 (Kafka 4.1 to 4.4) does."""

from __future__ import annotations

import pytest

from kip848_client.error_codes import ErrorCode
from mock_coordinator.core.groups.assignment.regex import matching_topics, require_valid_regex
from mock_coordinator.core.refused import Refused

REFUSED = {
    # recorded from RE2/J 1.8
    "foo[": "missing closing ]",
    "[]": "missing closing ]",
    "[^]": "missing closing ]",
    "[a-": "missing closing ]",
    "[[:alpha:]": "missing closing ]",
    "(a": "missing closing )",
    "(?P<n>a": "missing closing )",
    "a)": "regexp/syntax: internal error",
    ")(": "regexp/syntax: internal error",
    "(?=x)": "invalid or unsupported Perl syntax",
    "(?!x)": "invalid or unsupported Perl syntax",
    "(?>a)": "invalid or unsupported Perl syntax",
    "(?x)a": "invalid or unsupported Perl syntax",
    "(?i-)a": "invalid or unsupported Perl syntax",
    "(?i": "invalid or unsupported Perl syntax",
    "(?P=a)": "invalid or unsupported Perl syntax",
    "(?#c)": "invalid or unsupported Perl syntax",
    "(?<=a)b": "invalid named capture",
    "(?<!a)b": "invalid named capture",
    "(?P<n": "invalid named capture",
    "(?P<>a)": "invalid named capture",
    "(?P<é>a)": "invalid named capture",
    "(?P<a>x)(?P<a>y)": "duplicate capture group name",
    "(?<a>x)(?<a>y)": "duplicate capture group name",
    r"(a)\1": "invalid escape sequence",
    r"(?<n>a)\k<n>": "invalid escape sequence",
    r"\8": "invalid escape sequence",
    r"\Z": "invalid escape sequence",
    r"\C": "invalid escape sequence",
    r"\u0041": "invalid escape sequence",
    r"\x{": "invalid escape sequence",
    r"\x{110000}": "invalid escape sequence",
    r"[a-\d]": "invalid escape sequence",
    "[z-a]": "invalid character class range",
    r"\p{Foo}": "invalid character class range",
    "[[:foo:]]": "invalid character class range",
    "a**": "invalid nested repetition operator",
    "a++": "invalid nested repetition operator",
    "a{2}{3}": "invalid nested repetition operator",
    "*a": "missing argument to repetition operator",
    "a|*": "missing argument to repetition operator",
    "(*)": "missing argument to repetition operator",
    "a{2,1}": "invalid repeat count",
    "a{1001}": "invalid repeat count",
    "a{1,1001}": "invalid repeat count",
    "a{99999999999}": "invalid repeat count",
    "x\\": "trailing backslash at end of expression",
    "[\\": "trailing backslash at end of expression",
}

ACCEPTED = [
    "foo.*",
    "",
    "|",
    "()",
    "(?i)FOO",
    "(?s).",
    "(?U)a",
    "(?m)^a$",
    "(?<name>a)",
    "(?P<a>x)(?P<b>y)",
    r"\Q(?P<a>x)(?P<a>y)\E",
    r"[(?P<a>](?P<a>x)",
    r"\x{41}",
    r"\pN\p{Greek}\p{^Lu}",
    "[[:alpha:]]",
    "[]a]",
    "[a-z&&[b]]",
    "a{,2}",
    "a{1000}",
    "a{-1}",
    r"\_\-",
    "^*",
    r"\A\bfoo\z",
]


@pytest.mark.parametrize(("regex", "problem"), REFUSED.items())
def test_what_is_refused_and_how(regex: str, problem: str) -> None:
    with pytest.raises(Refused) as caught:
        require_valid_regex(regex)
    assert caught.value.code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert caught.value.message == (
        f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {problem}."
    )


@pytest.mark.parametrize("regex", ACCEPTED)
def test_what_is_accepted(regex: str) -> None:
    require_valid_regex(regex)


@pytest.mark.parametrize("regex", ["(?<name>a)", "(?<=a)b", "(?<a>x)(?<a>y)", "(?<!a)b"])
def test_kafka_4_0_knows_one_way_to_name_a_group(regex: str) -> None:
    with pytest.raises(Refused, match="invalid or unsupported Perl syntax"):
        require_valid_regex(regex, named_groups=False)
    require_valid_regex("(?P<name>a)", named_groups=False)


def test_a_whole_name_must_match() -> None:
    names = ["foo", "foo2", "afoo", "bar", "Foo"]
    assert matching_topics("foo", names) == ("foo",)
    assert matching_topics("foo.*", names) == ("foo", "foo2")
    assert matching_topics(".*foo", names) == ("afoo", "foo")
    assert matching_topics("(?i)foo", names) == ("Foo", "foo")
    assert matching_topics("foo|foo2", names) == ("foo", "foo2")
    assert matching_topics("^foo$|bar", names) == ("bar", "foo")
    assert matching_topics("", names) == ()
