"""``--command-config``: Kafka's properties become settings, or an error that says what to do."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest

from kip848_client import ConfigError
from kip848_client.cli._command_config import read_properties, settings_from


def settings(folder: Path, text: str) -> dict[str, Any]:
    file = folder / "client.properties"
    file.write_text(text)
    return settings_from(str(file))


def test_no_file_says_nothing() -> None:
    assert settings_from(None) == {}


def test_properties_are_read_as_java_reads_them() -> None:
    text = (
        "# a comment\n! another\n\n  a = 1\nb:2\nc 3\nd=x=y\n"
        "e=one \\\n    two\nf\ng\\ h=\\u0041\\t\\\\\nlast=\\"
    )
    assert read_properties(text) == {
        "a": "1",
        "b": "2",
        "c": "3",
        "d": "x=y",
        "e": "one two",
        "f": "",
        "g h": "A\t\\",
        "last": "",
    }


def test_a_login_is_taken_out_of_the_jaas_config(tmp_path: Path) -> None:
    found = settings(
        tmp_path,
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-256\nclient.id=me\n"
        "request.timeout.ms=5000\nacks=all\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \\\n"
        '  username="ann" password="a \\\\"b\\\\" c;";\n',
    )
    assert found == {
        "client_id": "me",
        "request_timeout_ms": 5000,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_plain_username": "ann",
        "sasl_plain_password": 'a "b" c;',
    }


def test_tls_without_a_truststore_trusts_what_the_system_does(tmp_path: Path) -> None:
    context = settings(tmp_path, "security.protocol=ssl")["ssl_context"]
    assert isinstance(context, ssl.SSLContext)
    assert context.check_hostname
    text = "security.protocol=SSL\nssl.endpoint.identification.algorithm=\n"
    context = settings(tmp_path, text)["ssl_context"]
    assert not context.check_hostname
    assert context.verify_mode == ssl.CERT_REQUIRED


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("security.protocol=SSL\nssl.truststore.location=x.jks", "ssl.truststore.type=PEM"),
        ("security.protocol=SSL\nssl.truststore.location=x\nssl.truststore.type=PEM", "No such"),
        ("security.protocol=SSL\nssl.keystore.location=x\nssl.keystore.type=PKCS12", "openssl"),
        ("security.protocol=SASL_SSL\nsasl.mechanism=PLAIN", "sasl.jaas.config"),
        ("security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER", "token provider"),
        ("request.timeout.ms=soon", "not a number"),
        ("request.timeout.ms=" + "9" * 5_000, "not a number of milliseconds"),
        ("request.timeout.ms=0", r"client\.properties: request_timeout_ms = 0"),
        ("security.protocol=NONE", r"client\.properties: security_protocol = 'NONE'"),
        (
            "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config=X username='';",
            "needs sasl.jaas.config",
        ),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        settings(tmp_path, text)


def test_values_are_trimmed_as_kafka_trims_them(tmp_path: Path) -> None:
    text = (
        "security.protocol=SASL_PLAINTEXT \nsasl.mechanism=PLAIN\t\nrequest.timeout.ms=5000 \n"
        "connections.max.idle.ms=-1\nsasl.jaas.config=X required username=ann password='b c';\n"
    )
    assert settings(tmp_path, text) == {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "request_timeout_ms": 5000,
        "connections_max_idle_ms": None,
        "sasl_plain_username": "ann",
        "sasl_plain_password": "b c",
    }


def test_a_mark_of_the_byte_order_hides_no_property(tmp_path: Path) -> None:
    assert settings(tmp_path, "\ufeffsecurity.protocol=SSL")["security_protocol"] == "SSL"


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.properties"):
        settings_from(str(tmp_path / "nowhere.properties"))
