"""What the command line prints passes through one module, which escapes names of strangers."""

from __future__ import annotations

import ast

import pytest

from tests.tidy.source_tree import Module, product_modules

_ALLOWED = (
    "kip848_client.cli._output",  # the one place
    "kip848_client.cli._demo._process",  # JSON for a parent
)
_COMMANDS = [
    module
    for module in product_modules()
    if module.name.startswith("kip848_client.cli") and module.name not in _ALLOWED
]


@pytest.mark.parametrize("module", _COMMANDS, ids=lambda module: module.name)
def test_a_command_prints_by_the_one_module(module: Module) -> None:
    tree = ast.parse(module.path.read_text(encoding="utf-8"))
    wrong = [
        f"{module.path}:{node.lineno}: {ast.unparse(node.func)}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("print", "sys.stdout.write", "sys.stderr.write")
    ]
    assert not wrong, "\n".join(wrong)
