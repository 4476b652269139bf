"""Who may import whom (ARCHITECTURE.md, "Layers"). What is pure: ``test_purity.py``."""

from __future__ import annotations

import pytest

from tests.tidy.source_tree import Module, imports_of, product_modules

LAYERS: dict[str, tuple[str, ...]] = {
    # folder or module              what of the client it may import, itself and the errors apart
    "core": (),
    "observe": ("core",),
    "config": ("core", "observe"),
    "runtime": ("core", "observe", "config"),
    "serialization": ("core",),
    "schema_registry": ("core", "serialization"),
    "records": ("core", "serialization", "runtime.net"),
    "consumer": ("core", "observe", "config", "runtime", "records"),
    "producer": ("core", "observe", "config", "runtime", "serialization"),
    "admin": ("core", "config", "runtime"),
    "processor": ("core", "observe", "config", "runtime", "records", "consumer", "producer"),
    "assignors": ("core",),
    "prometheus": ("core", "observe"),
    "otel": ("core", "observe"),
    "connect": ("core", "observe", "config", "runtime"),
    "history": ("core", "observe", "consumer", "producer"),
    "spark": ("core", "observe", "config", "records", "consumer", "producer", "admin", "history"),
    "aiokafka": ("core", "config", "runtime", "consumer", "producer"),
}
"""The client from the ground up. Only ``cli`` and ``testing`` may import all of it."""

CLIENT_CORE: dict[str, tuple[str, ...]] = {
    # folder or module of ``core``  what of ``core`` it may import, itself and the ground apart
    "wire": (),
    "compression": (),
    "ports": ("wire",),
    "assignors": (),
    "client_assignors": ("assignors", "wire"),
    "connect": ("assignors", "client_assignors", "wire"),
    "assignor_rounds": ("client_assignors",),
    "member": (),
    "offsets": (),
    "group": ("member", "offsets", "client_assignors", "assignor_rounds"),
    "group_wire": ("wire", "member", "offsets", "group", "client_assignors"),
    "cluster": ("wire",),
    "fetch": ("cluster", "wire"),
    "produce": ("cluster", "wire"),
}
GROUND = (
    "types",
    "backoff",
    "bootstrap",
    "empty",
    "extensions",
    "extras",
    "lazy",
    "outside",
    "partition_names",
    "recovery",
    "secrets",
    "short",
    "throttle",
    "visible",
)
"""The modules of ``core`` that every other one may import."""

LAYERS_OF_THE_MOCK: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("connection", ("core",)),
    ("storage", ("core",)),
    ("driver", ("core", "storage")),
    ("tcp", ("core", "connection", "driver")),
    ("security", ("core", "connection", "driver", "tcp")),
)

ONLY_IMPORTER = {
    "aiokafka": ("kip848_client.runtime.net", "kip848_client.aiokafka"),
    "pydantic": ("kip848_client.config", "kip848_client.spark.pipeline"),
    "anyio": ("kip848_client", "mock_coordinator"),
    # Kafka matches subscriptions (KIP-848) and transactional ids (KIP-1152) with RE2/J
    "re2": (
        "kip848_client.consumer._patterns",
        "mock_coordinator.core.groups",
        "mock_coordinator.core.transaction_coordinator",
    ),
    "cramjam": ("kip848_client.core.compression",),
    "prometheus_client": ("kip848_client.prometheus",),
    "opentelemetry": ("kip848_client.otel", "kip848_client.runtime.telemetry._otlp"),
    "confluent_kafka": (
        "kip848_client.schema_registry",
        "kip848_client.spark.pipeline.registry._client",
    ),
    "pyarrow": ("kip848_client.records._arrow",),
    "pyspark": ("kip848_client.spark",),
    "matplotlib": ("kip848_client.history.report",),
}


def _sources(*packages: str) -> list[Module]:
    found = [module for module in product_modules() if module.within(*packages)]
    assert found, packages
    return found


def test_each_entry_names_a_module() -> None:
    """An entry whose module was renamed would allow or forbid nothing, and say nothing."""
    of_client = [name for below in LAYERS.values() for name in below]
    of_core = [*GROUND, *(name for below in CLIENT_CORE.values() for name in below)]
    of_mock = [name for folder, below in LAYERS_OF_THE_MOCK for name in (folder, *below)]
    named = {
        *(f"kip848_client.{name}" for name in of_client),
        *(f"mock_coordinator.{name}" for name in of_mock),
        *(f"kip848_client.core.{name}" for name in of_core),
        *(importer for importers in ONLY_IMPORTER.values() for importer in importers),
    }
    lost = named - {module.name for module in product_modules()}
    assert not lost, f"there are no modules of these names: {sorted(lost)}"


ERRORS = ("kip848_client.errors", "kip848_client.error_codes")


def _goes_down(package: str, allowed: tuple[str, ...]) -> None:
    for module in _sources(package):
        for name, line in imports_of(module):
            if not name.startswith(("kip848_client", "mock_coordinator")):
                continue
            fine = any(name == one or name.startswith(one + ".") for one in allowed)
            assert fine, f"{module.path}:{line}: {package} may not import {name}"


@pytest.mark.parametrize("package", LAYERS)
def test_imports_go_down(package: str) -> None:
    allowed = (package, *LAYERS[package])
    within = (f"kip848_client.{each}" for each in allowed)
    _goes_down(f"kip848_client.{package}", (*ERRORS, *within))


@pytest.mark.parametrize("package", [*CLIENT_CORE, *GROUND])
def test_imports_of_the_core_go_down(package: str) -> None:
    allowed = (package, *GROUND, *CLIENT_CORE.get(package, ()))
    within = (f"kip848_client.core.{each}" for each in allowed)
    _goes_down(f"kip848_client.core.{package}", (*ERRORS, *within))


def test_the_layers_are_all_of_the_client() -> None:
    """A row that is renamed, or a folder without a row, is found."""
    top = _children("kip848_client") - {"__main__", "_version", "errors", "error_codes"}
    assert top == {*LAYERS, "cli", "testing"}
    assert _children("kip848_client.core") == {*CLIENT_CORE, *GROUND}


def _children(package: str) -> set[str]:
    below = f"{package}."
    names = (module.name for module in product_modules())
    return {name.removeprefix(below).split(".")[0] for name in names if name.startswith(below)}


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
    for module in _sources("kip848_client.core.member", "kip848_client.core.assignors"):
        for name, line in imports_of(module):
            assert not name.startswith("kip848_client.core.wire"), f"{module.path}:{line}"


def test_the_client_works_without_the_coordinator() -> None:
    for module in _sources("kip848_client"):
        if module.within("kip848_client.testing"):
            continue
        lazily = module.within("kip848_client.cli")
        for name, line in imports_of(module, module_level_only=lazily):
            assert not name.startswith("mock_coordinator"), f"{module.path}:{line}: {name}"


def test_the_coordinator_core_imports_only_the_shared_pure_layers() -> None:
    below = ("compression", "wire", "assignors", "connect", *GROUND)
    shared = (*ERRORS, "kip848_client.observe.core.metrics", "kip848_client.history.core")
    allowed = (*(f"kip848_client.core.{name}" for name in below), *shared)
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
