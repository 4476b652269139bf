"""A user makes a mistake beside a secret: no error, chain of errors or dump shows the secret."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from confluent_kafka.schema_registry import AsyncSchemaRegistryClient
from confluent_kafka.schema_registry.avro import AsyncAvroDeserializer
from pydantic import SecretStr, ValidationError

from kip848_client import Admin, Consumer, ExactlyOnceProcessor, Producer
from kip848_client.aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from kip848_client.cli._command_config import settings_from
from kip848_client.cli._mock_security import configure, security_data
from kip848_client.config import (
    AdminConfig,
    ClientConfig,
    ConsumerConfig,
    ProducerConfig,
    WorkerConfig,
    client_settings,
)
from kip848_client.connect import Worker
from kip848_client.errors import ConfigError
from kip848_client.runtime.client._parts import connection_options
from kip848_client.runtime.net._connection import ConnectionOptions
from kip848_client.schema_registry import SchemaDeserializer
from kip848_client.serialization import SerializationContext
from kip848_client.spark.pipeline.config import config_from, load_config
from kip848_client.spark.sink._options import sink_options
from kip848_client.spark.source.core._options import source_options
from mock_coordinator import MockBroker
from mock_coordinator.security import SecurityOptions
from tests.support.secrets_shown import (
    SECRET,
    dumps_of,
    refusal_in_loop,
    refusal_of,
    shows,
    texts_of,
)

Made = Callable[..., Any]


class Nothing:
    async def on_assigned(self, items: Any) -> None: ...
    async def on_revoked(self, items: Any) -> None: ...
    async def on_lost(self, items: Any) -> None: ...


def processor(**settings: Any) -> ExactlyOnceProcessor[Any, Any]:
    group: dict[str, Any] = {"group_id": "g", "enable_auto_commit": False}
    reads = Consumer("t", **group, isolation_level="read_committed", **settings)
    producer = Producer(transactional_id="t", **settings)
    return ExactlyOnceProcessor("t", lambda _: None, consumer=reads, producer=producer)


def worker(**settings: Any) -> Worker:
    given: dict[str, Any] = {"group_id": "g", **settings}
    return Worker({"copy": 1}, Nothing(), **given)


def consumer(**settings: Any) -> Consumer[Any, Any]:
    given: dict[str, Any] = {"group_id": "g", **settings}
    return Consumer("t", **given)


CLIENTS: Final[Mapping[str, Made]] = {
    "Consumer": consumer,
    "Producer": Producer,
    "Admin": Admin,
    "Worker": worker,
    "ExactlyOnceProcessor": processor,
    "AIOKafkaConsumer": AIOKafkaConsumer,
    "AIOKafkaProducer": AIOKafkaProducer,
}
CONFIGS: Final = (ConsumerConfig, ProducerConfig, AdminConfig, WorkerConfig)


@dataclass
class Provider:
    """As a user may write one; its ``repr`` shows what it has."""

    bearer: str

    async def token(self) -> str:
        return self.bearer


def secret_fields(config: type[ClientConfig]) -> list[str]:
    """The settings that are wrapped, so that nothing shows them."""
    return [name for name, field in config.model_fields.items() if "Secret" in repr(field)]


def given(name: str) -> dict[str, Any]:
    """Settings in which this one holds the secret, and all the others fit."""
    sasl: dict[str, Any] = {"security_protocol": "SASL_PLAINTEXT"}
    plain = {**sasl, "sasl_mechanism": "PLAIN", "sasl_plain_username": "alice"}
    return {
        "sasl_plain_password": {**plain, "sasl_plain_password": SECRET},
        "ssl_password": {"ssl_password": SECRET, "ssl_certfile": "/nowhere/cert.pem"},
        "sasl_oauth_token_provider": {
            **sasl,
            "sasl_mechanism": "OAUTHBEARER",
            "sasl_oauth_token_provider": Provider(SECRET),
        },
    }[name]


SECRET_FIELDS: Final = secret_fields(ClientConfig)
MISTAKES: Final[dict[str, dict[str, Any]]] = {
    "unknown": {"no_such_setting": 1},
    "password by another name": {"sasl_password": SECRET},
    "wrong type": {"request_timeout_ms": "soon"},
    "out of range": {"retry_backoff_ms": -1},
    "several": {"request_timeout_ms": "soon", "retry_backoff_ms": -1, "metadata_max_age_ms": []},
    "misspelled enum": {"security_protocol": "SASL_PLAIN"},
    "misspelled mechanism": {"sasl_mechanism": "SCRAM"},
    "partner in the clear": {"security_protocol": "PLAINTEXT", "ssl_password": SECRET},
    "partner missing": {"sasl_plain_username": None, "security_protocol": "SASL_PLAINTEXT"},
    "no certificate": {"security_protocol": "SSL", "ssl_certfile": None, "ssl_password": SECRET},
    "no such file": {"security_protocol": "SSL", "ssl_certfile": "/nowhere/c.pem"},
    "key for a path": {
        "security_protocol": "SSL",
        "ssl_certfile": f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n-----END PRIVATE KEY-----",
    },
    "token for a provider": {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "OAUTHBEARER",
        "sasl_oauth_token_provider": SECRET,
    },
    "login in an address": {"bootstrap_servers": f"alice:{SECRET}@kafka:9092"},
    "login with a comma": {"bootstrap_servers": f"alice:a,{SECRET}@kafka:9092"},
    "login in a URL": {"bootstrap_servers": f"SASL_SSL://alice:{SECRET}@kafka:9092"},
    "login in a list": {"bootstrap_servers": ["kafka:1", f"alice:{SECRET}@kafka:9092"]},
    "login as bytes": {"bootstrap_servers": [f"alice:{SECRET}@kafka".encode()]},
    "login in a mapping": {"bootstrap_servers": {f"alice:{SECRET}@kafka": 1}},
}
BAD_SECRETS: Final[dict[str, Any]] = {
    "list": [SECRET],
    "mapping": {"value": SECRET},
    "surrogate": f"\ud800{SECRET}",
    "too long": SECRET * 5_000,
    "object": Provider(SECRET),
}


def test_secret_fields_are_found() -> None:
    assert set(SECRET_FIELDS) == {
        "sasl_plain_password",
        "ssl_password",
        "sasl_oauth_token_provider",
    }
    for config in CONFIGS:
        assert secret_fields(config) == SECRET_FIELDS


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("field", SECRET_FIELDS)
def test_a_mistake_beside_a_secret(client: str, field: str) -> None:
    for name, mistake in MISTAKES.items():
        settings = {**given(field), **mistake}
        if name == "partner missing" and field == "sasl_oauth_token_provider":
            settings["sasl_mechanism"] = "PLAIN"
        error = refusal_in_loop(partial(CLIENTS[client], **settings))
        assert not shows(texts_of(error)), name


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("field", ["sasl_plain_password", "ssl_password"])
def test_a_secret_that_is_wrong_itself(client: str, field: str) -> None:
    for name, wrong in BAD_SECRETS.items():
        settings = {**given(field), "security_protocol": "SASL_SSL", field: wrong}
        error = refusal_in_loop(partial(CLIENTS[client], **settings))
        assert not shows(texts_of(error)), name


@pytest.mark.parametrize("config", CONFIGS)
def test_a_setting_class_called_directly(config: type[ClientConfig]) -> None:
    for mistake in MISTAKES.values():
        settings: dict[str, Any] = {"sasl_plain_password": SECRET, **mistake, "client_id": 5}
        with pytest.raises((ValidationError, ConfigError)) as caught:
            config(**settings)
        assert not shows(iter((str(caught.value), repr(caught.value))))


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("field", ["sasl_plain_password", "sasl_oauth_token_provider"])
def test_settings_that_are_right(config: type[ClientConfig], field: str) -> None:
    named: dict[str, Any] = {"group_id": "g"} if config is WorkerConfig else {}
    made = config.of({**named, **given(field)})
    options = connection_options(made)
    assert isinstance(options, ConnectionOptions)
    assert not shows(dumps_of(made))
    assert not shows(iter((repr(options), repr(made.security))))


def test_a_secret_may_come_wrapped() -> None:
    made = ConsumerConfig.of(
        {**given("sasl_plain_password"), "sasl_plain_password": SecretStr("x")}
    )
    assert made.sasl_plain_password == SecretStr("x")


# -- Kafka's own properties ----------------------------------------------------------------------

JAAS: Final = f'x.PlainLoginModule required username="alice" password="{SECRET}";'
SASL: Final = {
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "PLAIN",
    "sasl.jaas.config": JAAS,
}
TLS: Final = {"security.protocol": "SSL", "ssl.key.password": SECRET}
PROPERTIES: Final[dict[str, dict[str, str]]] = {
    "no user": {**SASL, "sasl.jaas.config": f'x required password="{SECRET}";'},
    "no quotes": {**SASL, "sasl.jaas.config": f"PlainLoginModule alice {SECRET}"},
    "number": {**SASL, "request.timeout.ms": "soon"},
    "secret for a number": {**SASL, "request.timeout.ms": JAAS, "sasl.mechanism": "PLAIN"},
    "mechanism": {**SASL, "sasl.mechanism": "PLAIM"},
    "protocol": {**SASL, "security.protocol": "SASL"},
    "token": {**SASL, "sasl.mechanism": "OAUTHBEARER"},
    "surrogate": {**SASL, "sasl.jaas.config": JAAS.replace(SECRET, f"\ud800{SECRET}")},
    "keystore": {**TLS, "ssl.keystore.location": "/nowhere/k.jks", "ssl.keystore.password": SECRET},
    "key without certificate": {**TLS, "ssl.keystore.key": SECRET},
    "key in place of a file": {**TLS, "ssl.keystore.location": f"-----BEGIN KEY-----\n{SECRET}"},
    "damaged": {
        **TLS,
        "ssl.keystore.certificate.chain": "-----BEGIN CERTIFICATE-----\nx",
        "ssl.keystore.key": f"-----BEGIN ENCRYPTED PRIVATE KEY-----\n{SECRET}",
    },
}


@pytest.mark.parametrize("case", PROPERTIES)
def test_a_command_config_file(case: str, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    lines = [f"{key}={value}" for key, value in PROPERTIES[case].items()]
    text = "\n".join(line.replace("\n", "\\n\\\n") for line in lines)
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    assert not shows(texts_of(refusal_of(lambda: settings_from(str(file)))))


@pytest.mark.parametrize("case", PROPERTIES)
@pytest.mark.parametrize("options", [source_options, sink_options])
def test_options_of_spark(case: str, options: Any) -> None:
    said = {f"kafka.{key}": value for key, value in PROPERTIES[case].items()}
    said |= {"kafka.bootstrap.servers": "kafka:9092"}
    said |= {"subscribe": "t"} if options is source_options else {"topic": "t"}
    more = {"is_stream": True} if options is source_options else {}

    def make() -> None:
        found = options(said, **more)
        found.client_settings()
        raise ConfigError("Spark takes it")

    assert not shows(texts_of(refusal_of(make)))


SPARK_MISTAKES: Final[dict[str, dict[str, str]]] = {
    "unknown": {"no.such.option": SECRET},
    "unknown of Kafka": {"kafka.sasl.password": SECRET},
    "login in an address": {"kafka.bootstrap.servers": f"alice:{SECRET}@kafka:9092"},
    "number": {"kafka.request.timeout.ms": "soon"},
    "truth": {"failOnDataLoss": "perhaps"},
}


@pytest.mark.parametrize("mistake", SPARK_MISTAKES)
@pytest.mark.parametrize("options", [source_options, sink_options])
def test_a_mistake_beside_a_login_of_spark(mistake: str, options: Any) -> None:
    said = {f"kafka.{key}": value for key, value in SASL.items()}
    said |= {"kafka.bootstrap.servers": "kafka:9092"}
    said |= {"subscribe": "t"} if options is source_options else {"topic": "t"}
    more = {"is_stream": True} if options is source_options else {}
    found = options(said, **more)
    assert not shows(dumps_of(found))
    assert found.client_settings()["sasl_plain_password"] == SECRET

    def make() -> None:
        Consumer(**options({**said, **SPARK_MISTAKES[mistake]}, **more).client_settings())

    assert not shows(texts_of(refusal_of(make)))


def test_properties_are_not_shown_by_client_settings() -> None:
    for case in PROPERTIES.values():
        made = partial(lambda said: AdminConfig.of(client_settings(said)), case)
        assert not shows(texts_of(refusal_of(made)))


# -- pipelines -----------------------------------------------------------------------------------


def pipeline(**changes: Any) -> dict[str, Any]:
    said: dict[str, Any] = {
        "source": {
            "bootstrap_servers": "kafka:9092",
            "topics": ["orders"],
            "options": {"kafka": {"sasl": {"jaas": {"config": JAAS}}, "ssl.key.password": SECRET}},
        },
        "sink": {"path": "/out", "options": {"fs.s3a.secret.key": SECRET}},
        "run": {"checkpoint": "/state", "spark": {"spark.hadoop.fs.s3a.access.key": SECRET}},
    }
    for name, values in changes.items():
        said[name] = {**said.get(name, {}), **values} if isinstance(values, dict) else values
    return said


PIPELINES: Final[dict[str, dict[str, Any]]] = {
    "unknown": {"source": {"sasl_password": SECRET}},
    "unknown table": {"password": SECRET},
    "wrong type": {"source": {"max_records_per_batch": "many"}},
    "missing": {"sink": {"path": None}},
    "neither": {"source": {"topics": []}},
    "options as a text": {"source": {"options": f"kafka.sasl.jaas.config={JAAS}"}},
    "settings of Spark as a text": {"run": {"spark": f"spark.ssl.keyPassword={SECRET}"}},
    "enum": {"source": {"engine": "java"}},
    "variable": {"source": {"options": {"a": "${NO_SUCH_VARIABLE_AT_ALL}", "p": SECRET}}},
    "login in a list": {"source": {"bootstrap_servers": [f"a:{SECRET}@kafka"]}},
    "login as a number": {"source": {"bootstrap_servers": f"a:{SECRET}@kafka", "topics": []}},
}


@pytest.mark.parametrize("mistake", PIPELINES)
def test_a_mistake_in_a_pipeline(mistake: str) -> None:
    error = refusal_of(lambda: config_from(pipeline(**PIPELINES[mistake])))
    assert isinstance(error, ConfigError)
    assert not shows(texts_of(error))


@pytest.mark.parametrize(
    "text",
    [
        f"[source]\npassword = {SECRET}",
        f'[source]\npassword = "{SECRET}',
        f'[source]\nx = "{SECRET}"\nx = "{SECRET}"',
        f'a = """{SECRET}\n',
        f'[source]\nbootstrap_servers = "k"\noptions = "{SECRET}"',
    ],
)
def test_a_file_of_a_pipeline(text: str, tmp_path: Path) -> None:
    file = tmp_path / "pipeline.toml"
    file.write_text(text)
    assert not shows(texts_of(refusal_of(lambda: load_config(file))))
    file.write_bytes(text.encode() + b"\xff")
    assert not shows(texts_of(refusal_of(lambda: load_config(file))))


def test_a_pipeline_that_is_right() -> None:
    found = config_from(pipeline())
    assert found.source.options["kafka.ssl.key.password"] == SECRET
    assert not shows(dumps_of(found))


# -- schema registries ---------------------------------------------------------------------------


async def _ask_registry(url: str) -> None:
    client = AsyncSchemaRegistryClient({"url": url, "max.retries": 0})
    values = SchemaDeserializer[Any](AsyncAvroDeserializer, client)
    await values.deserialize(b"\0\0\0\0\1", SerializationContext("t", "value", []))


@pytest.mark.parametrize("host", ["127.0.0.1:1", "[::1]:1", "h:1/a@b"])
def test_a_registry_with_a_login_in_its_address(host: str) -> None:
    url = f"http://alice:{SECRET}@{host}"
    assert not shows(texts_of(refusal_of(lambda: asyncio.run(_ask_registry(url)))))


# -- the bundled broker --------------------------------------------------------------------------

SECURITY: Final[dict[str, dict[str, Any]]] = {
    "list": {"users": [SECRET]},
    "text": {"users": f"alice:{SECRET}"},
    "password in a list": {"users": {"alice": [SECRET]}},
    "password in an object": {"users": {"alice": {"password": SECRET}}},
    "unknown": {"users": {"alice": SECRET}, "passwords": {"bob": SECRET}},
    "listeners": {"users": {"alice": SECRET}, "listeners": [SECRET]},
    "no name": {"users": {"alice": SECRET}, "listeners": [{}]},
    "password at a listener": {"listeners": [{"name": "a", "password": SECRET}]},
    "super users": {"users": {"alice": SECRET}, "super_users": 5},
    "rights": {"users": {"alice": SECRET}, "acls": [{"principal": "x"}]},
}


@pytest.mark.parametrize("mistake", SECURITY)
def test_a_mistake_in_security_options(mistake: str, tmp_path: Path) -> None:
    said = SECURITY[mistake]
    assert not shows(texts_of(refusal_of(lambda: SecurityOptions.from_data(said))))
    file = tmp_path / "security.json"
    file.write_text(json.dumps(said))
    assert not shows(texts_of(refusal_of(lambda: SecurityOptions.from_file(str(file)))))


@pytest.mark.parametrize("text", ['{"users": {"alice": "%s"', '["%s"]', "%s", '{"users": "%s"]'])
def test_a_security_file_that_is_no_json(text: str, tmp_path: Path) -> None:
    file = tmp_path / "security.json"
    file.write_text(text % SECRET)
    parser = argparse.ArgumentParser()
    configure(parser)
    arguments = parser.parse_args(["--security", str(file)])
    for make in (lambda: SecurityOptions.from_file(str(file)), lambda: security_data(arguments)):
        assert not shows(texts_of(refusal_of(make)))


@pytest.mark.parametrize("user", [SECRET, f":{SECRET}"])
def test_a_user_of_the_command_line(user: str) -> None:
    parser = argparse.ArgumentParser()
    configure(parser)
    arguments = parser.parse_args(["--user", user])
    assert not shows(texts_of(refusal_of(lambda: security_data(arguments))))


def test_security_options_that_are_right() -> None:
    options = SecurityOptions(users={"alice": SECRET})
    assert options.users == {"alice": SECRET}
    assert not shows(dumps_of(options))
    assert not shows(iter((repr(options.state()),)))


@pytest.mark.parametrize(
    "options",
    [
        {"security": {"users": {"alice": SECRET}}},
        {"security": SecurityOptions(users={"alice": SECRET}), "port": "x"},
        {"config": f"listener.name.x.plain.sasl.jaas.config={SECRET}"},
        {"config": {"ssl.key.password": SECRET, "log.segment.bytes": "many"}},
        {"config": {"ssl.key.password": SECRET, "no.such": "1"}},
    ],
)
def test_a_mistake_in_options_of_a_broker(options: dict[str, Any]) -> None:
    def make() -> None:
        MockBroker(**options).close()
        raise ConfigError("the broker takes it")

    assert not shows(texts_of(refusal_of(make)))
