"""Error codes have names: ``ErrorCode.NOT_COORDINATOR`` in code, NOT_COORDINATOR in prose, 16 only
on the wire and in the table of ``kip848_client.error_codes``."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from kip848_client.error_codes import ErrorCode
from tests.tidy.source_tree import modules

KEYWORDS = frozenset({"error_code", "error"})
"""Arguments and fields that carry a code."""
TAKERS = frozenset(
    {"BrokerError", "CommitRefusal", "HeartbeatRefused", "Refuse", "Refused", "refuse"}
)
"""What takes a code as its first argument."""
READ = frozenset({*KEYWORDS, "code", "codes", "error_codes"})
"""Names of what is compared with a code."""
KNOWN = frozenset(map(int, ErrorCode)) - {0}
"""0 says that there is no error."""
TABLE = "kip848_client.error_codes"
_LOOKED_AT = (ast.Compare, ast.Call, ast.Assign, ast.AnnAssign)
"""To match the other nodes takes seconds."""


def bare_numbers(tree: ast.AST) -> Iterator[ast.expr]:
    """Every literal number of the module that stands where an error code is meant."""
    for node in ast.walk(tree):
        if not isinstance(node, _LOOKED_AT):
            continue
        match node:
            case ast.Compare(left=left, comparators=others):
                sides = [left, *others]
                if any(_name(side) in READ for side in sides):
                    yield from (each for side in sides for each in _numbers(side))
            case ast.Call(func=function, args=arguments, keywords=keywords):
                yield from (
                    each
                    for keyword in keywords
                    if keyword.arg in KEYWORDS
                    for each in _numbers(keyword.value)
                )
                if arguments and _name(function) in TAKERS:
                    yield from _numbers(arguments[0])
                if _name(function) == "parametrize" and _is_text(arguments[0], READ):
                    yield from _numbers(arguments[1])
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                if name.lstrip("_") in ErrorCode.__members__ and name.lstrip("_") != "NONE":
                    yield from _numbers(value)
            case _:
                pass


def _is_text(node: ast.expr, texts: frozenset[str]) -> bool:
    return isinstance(node, ast.Constant) and node.value in texts


def _name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _numbers(node: ast.expr) -> Iterator[ast.expr]:
    """The numbers of an expression that are codes by themselves."""
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool) and value in KNOWN:
            yield node
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=1)):
            yield node
        case ast.IfExp(body=body, orelse=other):
            yield from _numbers(body)
            yield from _numbers(other)
        case ast.Tuple(elts=elements) | ast.List(elts=elements) | ast.Set(elts=elements):
            for each in elements:
                yield from _numbers(each)
        case _:
            pass


def test_an_error_code_is_named() -> None:
    bare = [
        f"{module.path}:{node.lineno}: error {ast.unparse(node)} has a name in ErrorCode"
        for module in modules()
        if module.name != TABLE
        for node in bare_numbers(module.tree)
    ]
    assert not bare, "\n".join(bare)


PROSE = re.compile(
    r"(?:\berrors?|\btold|\banswered with|\brefused with|\braises?|``\w*(?:Error|Refused)``)"
    r" \(?(?P<number>-?\d{1,3})\b(?! ?(?:ms|%|to\b|\w+s\b))",
    re.IGNORECASE,
)
"""How a sentence would say a number: "is told 16", "raises ``Refused`` 25", "error 42"."""


def test_a_sentence_names_an_error() -> None:
    bare = [
        f"{module.path}:{number}: error {found['number']} has a name in ErrorCode"
        for module in modules()
        if module.name not in {TABLE, __name__}
        for number, line in enumerate(module.text.splitlines(), 1)
        for found in PROSE.finditer(line)
        if int(found["number"]) in KNOWN
    ]
    assert not bare, "\n".join(bare)
