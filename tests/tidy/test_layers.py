"""Who may import whom (ARCHITECTURE.md, "Layers"). What is pure: ``test_purity.py``."""

from __future__ import annotations

import pytest

from tests.tidy.source_tree import Module, imports_of, product_modules

GROUND = (
    "kip848_client.core.types",
    "kip848_client.errors",
    "kip848_client.error_codes",
    "kip848_client.core.shown",
    "kip848_client.core.lazy",
    "kip848_client.core.extensions",
    "kip848_client.core.extras",
    "kip848_client.core.secrets",
    "kip848_client.core.visible",
    "kip848_client.core.partition_names",
    "kip848_client.core.backoff",
)
"""The ground floor: whoever is above may import it."""

LAYERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    # package                          what of ours it may import, itself apart
    ("kip848_client.core.types", ()),
    ("kip848_client.core.backoff", ()),
    ("kip848_client.errors", ("kip848_client.error_codes",)),
    ("kip848_client.error_codes", ()),
    ("kip848_client.core.compression", ()),
    ("kip848_client.core.wire", GROUND),
    ("kip848_client.core.assignors", GROUND),
    ("kip848_client.core.member", GROUND),
    ("kip848_client.core.offsets", (*GROUND, "kip848_client.core.ports")),
    (
        "kip848_client.core.client_assignors",
        (*GROUND, "kip848_client.core.assignors", "kip848_client.core.wire"),
    ),
    (
        "kip848_client.core.connect",
        (
            *GROUND,
            "kip848_client.core.assignors",
            "kip848_client.core.client_assignors",
            "kip848_client.core.wire",
        ),
    ),
    ("kip848_client.core.assignor_rounds", (*GROUND, "kip848_client.core.client_assignors")),
    (
        "kip848_client.core.group",
        (
            *GROUND,
            "kip848_client.core.member",
            "kip848_client.core.offsets",
            "kip848_client.core.client_assignors",
            "kip848_client.core.assignor_rounds",
        ),
    ),
    (
        "kip848_client.connect",
        (
            *GROUND,
            "kip848_client.core.wire",
            "kip848_client.core.member",
            "kip848_client.core.client_assignors",
            "kip848_client.core.connect",
            "kip848_client.core.assignor_rounds",
            "kip848_client.core.ports",
            "kip848_client.runtime.clock",
            "kip848_client.config",
            "kip848_client.runtime.net",
            "kip848_client.runtime",
        ),
    ),
    ("kip848_client.core.cluster", (*GROUND, "kip848_client.core.wire")),
    (
        "kip848_client.core.fetch",
        (*GROUND, "kip848_client.core.cluster", "kip848_client.core.wire"),
    ),
    (
        "kip848_client.core.produce",
        (*GROUND, "kip848_client.core.cluster", "kip848_client.core.wire"),
    ),
    ("kip848_client.observe.core.metrics", ()),
    ("kip848_client.history.core", GROUND),
    (
        "kip848_client.history.recording",
        (
            *GROUND,
            "kip848_client.history.core",
            "kip848_client.observe.core.watching",
            "kip848_client.consumer",
            "kip848_client.producer",
        ),
    ),
    (
        "kip848_client.history.report",
        (*GROUND, "kip848_client.history.core", "kip848_client.history.recording"),
    ),
    (
        "kip848_client.runtime.telemetry",
        (
            *GROUND,
            "kip848_client.core.compression",
            "kip848_client.core.wire",
            "kip848_client.observe.core.metrics",
            "kip848_client.core.ports",
            "kip848_client.runtime.random",
            "kip848_client.runtime",
        ),
    ),
    ("kip848_client.prometheus", (*GROUND, "kip848_client.observe.core.metrics")),
    ("kip848_client.otel", (*GROUND, "kip848_client.observe.core.metrics")),
    (
        "kip848_client.observe.core.watching",
        (
            *GROUND,
            "kip848_client.core.member",
            "kip848_client.core.offsets",
            "kip848_client.core.group",
            "kip848_client.core.fetch",
            "kip848_client.core.cluster",
            "kip848_client.core.produce",
            "kip848_client.observe.core.metrics",
        ),
    ),
    (
        "kip848_client.core.group_wire.heartbeat",
        (*GROUND, "kip848_client.core.wire", "kip848_client.core.member"),
    ),
    (
        "kip848_client.core.group_wire.assignors",
        (
            *GROUND,
            "kip848_client.core.wire",
            "kip848_client.core.group",
            "kip848_client.core.client_assignors",
        ),
    ),
    (
        "kip848_client.core.group_wire.offsets",
        (
            *GROUND,
            "kip848_client.core.wire",
            "kip848_client.core.offsets",
            "kip848_client.core.group",
            "kip848_client.core.ports",
        ),
    ),
    ("kip848_client.core.ports", (*GROUND, "kip848_client.core.wire")),
    ("kip848_client.core.shown", ()),
    ("kip848_client.core.lazy", ()),
    ("kip848_client._version", ()),
    ("kip848_client.core.extensions", ()),
    ("kip848_client.core.extras", ()),
    ("kip848_client.core.secrets", ("kip848_client.core.shown",)),
    ("kip848_client.core.visible", ()),
    ("kip848_client.core.partition_names", ("kip848_client.core.types",)),
    ("kip848_client.core.bootstrap", ()),
    ("kip848_client.runtime.clock", ()),
    ("kip848_client.runtime.random", ()),
    ("kip848_client.runtime.arguments", GROUND),
    (
        "kip848_client.config",
        (
            *GROUND,
            "kip848_client.core.bootstrap",
            "kip848_client.core.client_assignors",
            "kip848_client.core.connect",
            "kip848_client.observe.core.metrics",
        ),
    ),
    (
        "kip848_client.runtime.net",
        (
            *GROUND,
            "kip848_client.core.compression",
            "kip848_client.core.wire",
            "kip848_client.core.ports",
            "kip848_client.core.bootstrap",
            "kip848_client.runtime.random",
        ),
    ),
    (
        "kip848_client.runtime",
        (
            *GROUND,
            "kip848_client.core.cluster",
            "kip848_client.core.wire",
            "kip848_client.core.member",
            "kip848_client.core.client_assignors",
            "kip848_client.core.ports",
            "kip848_client.runtime.random",
            "kip848_client.config",
            "kip848_client.runtime.net",
        ),
    ),
    ("kip848_client.serialization", GROUND),
    ("kip848_client.schema_registry", (*GROUND, "kip848_client.serialization")),
    (
        "kip848_client.records",
        (
            *GROUND,
            "kip848_client.core.compression",
            "kip848_client.core.fetch",
            "kip848_client.serialization",
            "kip848_client.runtime.net._codec",
        ),
    ),
    (
        "kip848_client.consumer",
        (
            *GROUND,
            "kip848_client.core.wire",
            "kip848_client.core.member",
            "kip848_client.core.offsets",
            "kip848_client.core.group",
            "kip848_client.core.client_assignors",
            "kip848_client.core.assignor_rounds",
            "kip848_client.core.group_wire.assignors",
            "kip848_client.core.group_wire.heartbeat",
            "kip848_client.core.group_wire.offsets",
            "kip848_client.core.ports",
            "kip848_client.runtime.arguments",
            "kip848_client.runtime.clock",
            "kip848_client.config",
            "kip848_client.runtime.net",
            "kip848_client.runtime",
            "kip848_client.core.cluster",
            "kip848_client.core.fetch",
            "kip848_client.records",
            "kip848_client.observe.core.metrics",
            "kip848_client.runtime.telemetry",
            "kip848_client.observe.core.watching",
        ),
    ),
    (
        "kip848_client.producer",
        (
            *GROUND,
            "kip848_client.core.wire",
            "kip848_client.core.cluster",
            "kip848_client.core.produce",
            "kip848_client.serialization",
            "kip848_client.core.ports",
            "kip848_client.runtime.arguments",
            "kip848_client.runtime.random",
            "kip848_client.runtime.clock",
            "kip848_client.config",
            "kip848_client.runtime.net",
            "kip848_client.runtime",
            "kip848_client.observe.core.metrics",
            "kip848_client.runtime.telemetry",
            "kip848_client.observe.core.watching",
        ),
    ),
    (
        "kip848_client.admin",
        (
            *GROUND,
            "kip848_client.core.wire",
            "kip848_client.core.ports",
            "kip848_client.runtime.arguments",
            "kip848_client.runtime.random",
            "kip848_client.runtime.clock",
            "kip848_client.core.assignors",
            "kip848_client.core.client_assignors",
            "kip848_client.core.connect",
            "kip848_client.config",
            "kip848_client.runtime.net",
            "kip848_client.runtime",
        ),
    ),
    (
        "kip848_client.processor.core",
        (
            *GROUND,
            "kip848_client.core.ports",
            "kip848_client.runtime.arguments",
            "kip848_client.runtime.clock",
            "kip848_client.config",
            "kip848_client.runtime",
            "kip848_client.records",
            "kip848_client.consumer",
            "kip848_client.producer",
            "kip848_client.observe.core.watching",
        ),
    ),
    (
        "kip848_client.spark",
        (
            *GROUND,
            "kip848_client.config",
            "kip848_client.records",
            "kip848_client.consumer",
            "kip848_client.producer",
            "kip848_client.admin",
            "kip848_client.history.core",
        ),
    ),
    (
        "kip848_client.aiokafka",
        (
            *GROUND,
            "kip848_client.config",
            "kip848_client.core.wire",
            "kip848_client.core.ports",
            "kip848_client.core.member",
            "kip848_client.core.produce",
            "kip848_client.runtime.net",
            "kip848_client.consumer",
            "kip848_client.producer",
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
    "aiokafka": ("kip848_client.runtime.net",),
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
    "confluent_kafka": ("kip848_client.schema_registry",),
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
    of_client = [*GROUND, *(name for _, below in LAYERS for name in below)]
    of_mock = [name for folder, below in LAYERS_OF_THE_MOCK for name in (folder, *below)]
    named = {
        *(f"kip848_client.{name}" for name in of_client),
        *(f"mock_coordinator.{name}" for name in of_mock),
        *(package for package, _ in LAYERS),
        *(importer for importers in ONLY_IMPORTER.values() for importer in importers),
    }
    lost = named - {module.name for module in product_modules()}
    assert not lost, f"there are no modules of these names: {sorted(lost)}"


@pytest.mark.parametrize(("package", "below"), LAYERS, ids=[layer[0] for layer in LAYERS])
def test_imports_go_down(package: str, below: tuple[str, ...]) -> None:
    allowed = (package, *below)
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
    for module in _sources("kip848_client.core.member", "kip848_client.core.assignors"):
        for name, line in imports_of(module):
            assert not name.startswith("kip848_client.core.wire"), f"{module.path}:{line}"


def test_the_client_works_without_the_coordinator() -> None:
    for module in _sources("kip848_client"):
        lazily = module.within("kip848_client.cli")
        for name, line in imports_of(module, module_level_only=lazily):
            assert not name.startswith("mock_coordinator"), f"{module.path}:{line}: {name}"


def test_the_coordinator_core_imports_only_the_shared_pure_layers() -> None:
    shared = (
        *GROUND,
        "kip848_client.core.compression",
        "kip848_client.core.wire",
        "kip848_client.core.assignors",
        "kip848_client.core.connect",
        "kip848_client.observe.core.metrics",
        "kip848_client.history.core",
    )
    allowed = shared
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
