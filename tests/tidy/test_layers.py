"""Who may import whom, and what a pure core may not touch (ARCHITECTURE.md, "Layers")."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.tidy.source_tree import Module, imports_of, product_modules

PURE = (
    "kip848_client._types",
    "kip848_client._backoff",
    "kip848_client.errors",
    "kip848_client.error_codes",
    "kip848_client.compression",
    "kip848_client.wire",
    "kip848_client.assignors",
    "kip848_client.client_assignors",
    "kip848_client._computing",
    "kip848_client.connect",
    "kip848_client.member",
    "kip848_client.group",
    "kip848_client.worker._classic_core",
    "kip848_client.worker._classic_errors",
    "kip848_client.worker._classic_heartbeat",
    "kip848_client.worker._classic_items",
    "kip848_client.worker._classic_leading",
    "kip848_client.worker._classic_leave",
    "kip848_client.worker._classic_membership",
    "kip848_client.worker._classic_messages",
    "kip848_client.worker._classic_model",
    "kip848_client.worker._classic_states",
    "kip848_client.worker._classic_wire",
    "kip848_client.worker._commands",
    "kip848_client.worker._computing",
    "kip848_client.worker._core",
    "kip848_client.worker._events",
    "kip848_client.worker._model",
    "kip848_client.worker._partitions",
    "kip848_client.worker._reasons",
    "kip848_client.worker._scheduled",
    "kip848_client.worker._wire",
    "kip848_client.metrics",
    "kip848_client.serialization",
    "kip848_client.watching",
    "kip848_client.history",
    "kip848_client.recording._members",
    "kip848_client.cluster",
    "kip848_client.fetching",
    "kip848_client.producing",
    "kip848_client.telemetry._core",
    "kip848_client.telemetry._ledger",
    "kip848_client.telemetry._model",
    "kip848_client.telemetry._names",
    "kip848_client.telemetry._verdicts",
    "kip848_client.admin._connect_wire",
    "kip848_client.admin._group_wire",
    "kip848_client.admin._model",
    "kip848_client.admin._movements",
    "kip848_client.admin._offset_wire",
    "kip848_client.admin._reset",
    "kip848_client.admin._rounds",
    "kip848_client.admin._topic_wire",
    "kip848_client.exactly_once._book",
    "kip848_client.exactly_once._commands",
    "kip848_client.exactly_once._condemned",
    "kip848_client.exactly_once._core",
    "kip848_client.exactly_once._events",
    "kip848_client.exactly_once._model",
    "kip848_client.exactly_once._verdicts",
    "kip848_client.spark._decisions",
    "kip848_client.spark._manifest",
    "kip848_client.spark._outcome",
    "kip848_client.spark._ownership",
    "kip848_client.spark._planning",
    "kip848_client.spark._ranges",
    "kip848_client.spark._sharing",
    "kip848_client.spark._where",
    "kip848_client.spark._written",
    "kip848_client.spark.pipeline._causes",
    "kip848_client.spark.pipeline._guard",
    "kip848_client.spark.pipeline._status",
    "kip848_client.offsets._tracker",
    "kip848_client.offsets._handouts",
    "kip848_client.offsets._committer",
    "mock_coordinator.connection",
    "mock_coordinator.core",
)
"""No clock, no I/O, no randomness in here: time is an argument, commands go out."""

IMPURE = frozenset(
    [
        "aiokafka",
        "anyio",
        "asyncio",
        "logging",
        "pydantic",
        "random",
        "secrets",
        "socket",
        "subprocess",
        "threading",
        "time",
        "transitions",
    ]
)

GROUND = (
    "_types",
    "errors",
    "error_codes",
    "_shown",
    "_lazy",
    "_extras",
    "_secrets",
    "_visible",
    "_partition_names",
    "_backoff",
)
"""The ground floor: whoever is above may import it."""

LAYERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    # package                          what of ours it may import, itself apart
    ("kip848_client._types", ()),
    ("kip848_client._backoff", ()),
    ("kip848_client.errors", ("error_codes",)),
    ("kip848_client.error_codes", ()),
    ("kip848_client.compression", ()),
    ("kip848_client.wire", GROUND),
    ("kip848_client.assignors", GROUND),
    ("kip848_client.member", GROUND),
    ("kip848_client.offsets", (*GROUND, "_ports")),
    ("kip848_client.client_assignors", (*GROUND, "assignors", "wire")),
    ("kip848_client.connect", (*GROUND, "assignors", "client_assignors", "wire")),
    ("kip848_client._computing", (*GROUND, "client_assignors")),
    ("kip848_client.group", (*GROUND, "member", "offsets", "client_assignors", "_computing")),
    (
        "kip848_client.worker",
        (
            *GROUND,
            "wire",
            "member",
            "client_assignors",
            "connect",
            "_computing",
            "_ports",
            "_clock",
            "config",
            "_aiokafka",
            "_driver",
        ),
    ),
    ("kip848_client.cluster", (*GROUND, "wire")),
    ("kip848_client.fetching", (*GROUND, "cluster", "wire")),
    ("kip848_client.producing", (*GROUND, "cluster", "wire")),
    ("kip848_client.metrics", ()),
    ("kip848_client.history", GROUND),
    ("kip848_client.recording", (*GROUND, "history", "watching", "consumer", "producer")),
    ("kip848_client.report", (*GROUND, "history", "recording")),
    (
        "kip848_client.telemetry",
        (*GROUND, "compression", "wire", "metrics", "_ports", "_chance", "_driver"),
    ),
    ("kip848_client.prometheus", (*GROUND, "metrics")),
    ("kip848_client.otel", (*GROUND, "metrics")),
    (
        "kip848_client.watching",
        (*GROUND, "member", "offsets", "group", "fetching", "cluster", "producing", "metrics"),
    ),
    ("kip848_client._heartbeat_wire", (*GROUND, "wire", "member")),
    ("kip848_client._assignor_wire", (*GROUND, "wire", "group", "client_assignors")),
    ("kip848_client._offsets_wire", (*GROUND, "wire", "offsets", "group", "_ports")),
    ("kip848_client._ports", (*GROUND, "wire")),
    ("kip848_client._shown", ()),
    ("kip848_client._lazy", ()),
    ("kip848_client._version", ()),
    ("kip848_client._extras", ()),
    ("kip848_client._secrets", ("_shown",)),
    ("kip848_client._visible", ()),
    ("kip848_client._partition_names", ("_types",)),
    ("kip848_client._bootstrap", ()),
    ("kip848_client._clock", ()),
    ("kip848_client._chance", ()),
    ("kip848_client._arguments", GROUND),
    ("kip848_client.config", (*GROUND, "_bootstrap", "client_assignors", "connect", "metrics")),
    (
        "kip848_client._aiokafka",
        (*GROUND, "compression", "wire", "_ports", "_bootstrap", "_chance"),
    ),
    (
        "kip848_client._driver",
        (
            *GROUND,
            "cluster",
            "wire",
            "member",
            "client_assignors",
            "_ports",
            "_chance",
            "config",
            "_aiokafka",
        ),
    ),
    ("kip848_client.serialization", GROUND),
    ("kip848_client.schema_registry", (*GROUND, "serialization")),
    (
        "kip848_client.records",
        (*GROUND, "compression", "fetching", "serialization", "_aiokafka._codec"),
    ),
    (
        "kip848_client.consumer",
        (
            *GROUND,
            "wire",
            "member",
            "offsets",
            "group",
            "client_assignors",
            "_computing",
            "_assignor_wire",
            "_heartbeat_wire",
            "_offsets_wire",
            "_ports",
            "_arguments",
            "_clock",
            "config",
            "_aiokafka",
            "_driver",
            "cluster",
            "fetching",
            "records",
            "metrics",
            "telemetry",
            "watching",
        ),
    ),
    (
        "kip848_client.producer",
        (
            *GROUND,
            "wire",
            "cluster",
            "producing",
            "serialization",
            "_ports",
            "_arguments",
            "_chance",
            "_clock",
            "config",
            "_aiokafka",
            "_driver",
            "metrics",
            "telemetry",
            "watching",
        ),
    ),
    (
        "kip848_client.admin",
        (
            *GROUND,
            "wire",
            "_ports",
            "_arguments",
            "_chance",
            "_clock",
            "assignors",
            "client_assignors",
            "connect",
            "config",
            "_aiokafka",
            "_driver",
        ),
    ),
    (
        "kip848_client.exactly_once",
        (
            *GROUND,
            "_ports",
            "_arguments",
            "_clock",
            "config",
            "_driver",
            "records",
            "consumer",
            "producer",
            "watching",
        ),
    ),
    (
        "kip848_client.spark",
        (*GROUND, "config", "records", "consumer", "producer", "admin", "history"),
    ),
    (
        "kip848_client.aiokafka",
        (
            *GROUND,
            "config",
            "wire",
            "_ports",
            "member",
            "producing",
            "_aiokafka",
            "consumer",
            "producer",
        ),
    ),
)

LAYERS_OF_THE_MOCK: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("connection", ("core",)),
    ("storage", ("core",)),
    ("driver", ("core", "storage")),
    ("tcp", ("core", "connection", "driver")),
    ("security", ("core", "connection", "driver", "tcp")),
)

ONLY_IMPORTER = {
    "aiokafka": ("kip848_client._aiokafka",),
    "pydantic": ("kip848_client.config", "kip848_client.spark.pipeline"),
    "anyio": ("kip848_client", "mock_coordinator"),
    # Kafka matches subscriptions (KIP-848) and transactional ids (KIP-1152) with RE2/J
    "re2": (
        "kip848_client.consumer._patterns",
        "mock_coordinator.core.groups",
        "mock_coordinator.core.transaction_coordinator",
    ),
    "cramjam": ("kip848_client.compression",),
    "prometheus_client": ("kip848_client.prometheus",),
    "opentelemetry": ("kip848_client.otel", "kip848_client.telemetry._otlp"),
    "confluent_kafka": ("kip848_client.schema_registry",),
    "pyarrow": ("kip848_client.records._arrow",),
    "pyspark": ("kip848_client.spark",),
    "matplotlib": ("kip848_client.report",),
}


def _sources(*packages: str) -> list[Module]:
    found = [module for module in product_modules() if module.within(*packages)]
    assert found, packages
    return found


def test_a_pure_module_imports_nothing_impure() -> None:
    for module in _sources(*PURE):
        for name, line in imports_of(module):
            top = name.split(".")[0]
            assert top not in IMPURE, f"{module.path}:{line}: a pure core imports {name}"


def test_a_pure_module_calls_nothing_that_differs_between_runs() -> None:
    for module in _sources(*PURE):
        banned = {"hash", "id", "open", "print", "input"}
        for node in ast.walk(module.tree):
            if not isinstance(node, ast.Call):
                continue
            if isinstance(node.func, ast.Name):
                if module.name.endswith("__main__"):
                    continue
                assert node.func.id not in banned, f"{module.path}:{node.lineno}: {node.func.id}()"
            elif isinstance(node.func, ast.Attribute):
                assert node.func.attr not in {"uuid4", "uuid1", "now", "utcnow", "urandom"} or (
                    "clock" in ast.unparse(node.func)
                ), f"{module.path}:{node.lineno}: {node.func.attr}()"


def _set_like(node: ast.expr) -> bool:
    """Whether the expression is plainly a set: literal, comprehension, set() call, set operator on
    one of these, or a name annotated so in the same function (see ``_annotated_sets``)."""
    if isinstance(node, ast.Set | ast.SetComp):
        return True
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in {"set", "frozenset"}
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd | ast.BitOr | ast.Sub):
        return _set_like(node.left) or _set_like(node.right)
    return False


def _annotated_sets(tree: ast.AST) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.AnnAssign | ast.arg) and node.annotation is not None:
            text = ast.unparse(node.annotation)
            target = node.arg if isinstance(node, ast.arg) else ast.unparse(node.target)
            if text.startswith(("set[", "frozenset[", "AbstractSet[", "Final[frozenset[")):
                names.add(target.removeprefix("self."))
    return names


def _unsorted_iterations(module: Module) -> Iterator[tuple[int, str]]:
    for scope in ast.walk(module.tree):
        if not isinstance(scope, ast.FunctionDef | ast.Module | ast.ClassDef):
            continue
        names = _annotated_sets(scope) if isinstance(scope, ast.FunctionDef) else set()
        for node in ast.walk(scope):
            iterated: list[ast.expr] = []
            if isinstance(node, ast.For):
                iterated = [node.iter]
            elif isinstance(node, ast.ListComp | ast.GeneratorExp | ast.DictComp):
                iterated = [generator.iter for generator in node.generators]
            for expression in iterated:
                plain = isinstance(expression, ast.Name) and expression.id in names
                if plain or _set_like(expression):
                    yield expression.lineno, ast.unparse(expression)


ORDER_FREE = ("any(", "all(", "sum(", "max(", "min(", "sorted(", "len(", "set(", "frozenset(")


def test_a_pure_module_does_not_depend_on_the_order_of_a_set() -> None:
    for module in _sources(*PURE):
        lines = module.text.splitlines()
        for line, expression in _unsorted_iterations(module):
            here = lines[line - 1]
            if any(f"{call}" in here for call in ORDER_FREE):
                continue  # an order-free reduction, or sorted on the spot
            raise AssertionError(f"{module.path}:{line}: iterates over a set: {expression}")


@pytest.mark.parametrize(("package", "below"), LAYERS, ids=[layer[0] for layer in LAYERS])
def test_imports_go_down(package: str, below: tuple[str, ...]) -> None:
    allowed = (package, *(f"kip848_client.{name}" for name in below))
    for module in _sources(package):
        for name, line in imports_of(module):
            if not name.startswith(("kip848_client", "mock_coordinator")):
                continue
            fine = any(name == one or name.startswith(one + ".") for one in allowed)
            assert fine, f"{module.path}:{line}: {package} may not import {name}"


@pytest.mark.parametrize(("folder", "below"), LAYERS_OF_THE_MOCK)
def test_imports_of_the_mock_go_down(folder: str, below: tuple[str, ...]) -> None:
    allowed = tuple(f"mock_coordinator.{name}." for name in (folder, *below))
    modules = _sources(f"mock_coordinator.{folder}")
    assert modules
    for module in modules:
        for name, line in imports_of(module):
            if name.startswith("mock_coordinator"):
                assert f"{name}.".startswith(allowed), f"{module.path}:{line}: imports {name}"


def test_the_member_core_does_not_know_the_wire() -> None:
    for module in _sources("kip848_client.member", "kip848_client.assignors"):
        for name, line in imports_of(module):
            assert not name.startswith("kip848_client.wire"), f"{module.path}:{line}"


def test_the_client_works_without_the_coordinator() -> None:
    for module in _sources("kip848_client"):
        lazily = module.within("kip848_client.cli")
        for name, line in imports_of(module, module_level_only=lazily):
            assert not name.startswith("mock_coordinator"), f"{module.path}:{line}: {name}"


def test_the_coordinator_core_imports_only_the_shared_pure_layers() -> None:
    shared = (*GROUND, "compression", "wire", "assignors", "connect", "metrics", "history")
    allowed = tuple(f"kip848_client.{name}" for name in shared)
    for module in _sources("mock_coordinator.core"):
        for name, line in imports_of(module):
            if name.startswith("kip848_client"):
                assert name.startswith(allowed), f"{module.path}:{line}: {name}"
            if name.startswith("mock_coordinator"):
                assert name.startswith("mock_coordinator.core"), f"{module.path}:{line}: {name}"


CORE_LAYERS: tuple[tuple[str, ...], ...] = (
    ("refused", "release_line", "map_orders", "inputs"),
    ("outputs", "profile"),
    ("profiles", "topics", "security"),
    ("nodes", "settings", "logs"),
    ("groups",),
    ("transaction_coordinator",),
    ("journals",),
    ("state",),
    ("authentication", "authorization", "fetching", "transactions"),
    ("apis", "chronicle", "control"),
    ("cluster", "faults", "ownership"),
)
"""The core from the ground up: a layer imports those before it, and neither of its neighbours."""

GROUP_LAYERS: tuple[tuple[str, ...], ...] = (
    ("records",),
    ("record_format", "state"),
    ("assignment", "offsets", "classic"),
    ("client_assignors",),
    ("membership",),
    ("migration",),
    ("consumer",),
    ("classic_members",),
    ("connect",),
    ("service",),
)
"""The same inside of ``groups``."""


@pytest.mark.parametrize(
    ("package", "layers"),
    [("mock_coordinator.core", CORE_LAYERS), ("mock_coordinator.core.groups", GROUP_LAYERS)],
)
def test_the_core_is_built_in_layers(package: str, layers: tuple[tuple[str, ...], ...]) -> None:
    inside = [module.name for module in _sources(package) if module.name != package]
    rooms = {name.removeprefix(f"{package}.").split(".")[0] for name in inside}
    assert rooms == {room for layer in layers for room in layer}
    allowed: tuple[str, ...] = ()
    for layer in layers:
        for room in layer:
            here = (*allowed, room)
            for module in _sources(f"{package}.{room}"):
                for name, line in imports_of(module):
                    if name.startswith(f"{package}."):
                        target = name.removeprefix(f"{package}.").split(".")[0]
                        assert target in here, f"{module.path}:{line}: {room} imports {target}"
        allowed = (*allowed, *layer)


def test_the_groups_do_not_know_the_broker_around_them() -> None:
    settings = ("settings.broker_config", "settings.topic_config", "profile")
    shared = ("groups", "inputs", "refused", "topics.catalog", "topics.topic_names", *settings)
    allowed = tuple(f"mock_coordinator.core.{name}" for name in shared)
    for module in _sources("mock_coordinator.core.groups"):
        for name, line in imports_of(module):
            if name.startswith("mock_coordinator"):
                assert name.startswith(allowed), f"{module.path}:{line}: {name}"


@pytest.mark.parametrize(("library", "importers"), ONLY_IMPORTER.items())
def test_each_library_has_its_importers(library: str, importers: tuple[str, ...]) -> None:
    for module in product_modules():
        for name, line in imports_of(module):
            if name.split(".")[0] == library:
                assert module.within(*importers), f"{module.path}:{line}: imports {library}"
