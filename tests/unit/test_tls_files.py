"""TLS from files: what fits makes a context, what does not is told by its setting when a client is
made."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from kip848_client import Admin, ConfigError, Consumer, Producer
from kip848_client.cli._command_config import settings_from
from kip848_client.config import AdminConfig

PASSWORD: Final = "opens it"


class Files:
    """PEM files of an authority and of a client, and some that are none."""

    def __init__(self, folder: Path) -> None:
        authority = trustme.CA()
        client = authority.issue_cert("client.test")
        key = client.private_key_pem.bytes()
        chain = client.cert_chain_pems[0].bytes()
        locked = load_pem_private_key(key, None).private_bytes(
            Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(PASSWORD.encode())
        )
        other = authority.issue_cert("other.test").private_key_pem.bytes()
        self._folder = folder
        self.ca = self._file("ca", authority.cert_pem.bytes())
        self.chain = self._file("chain", chain)
        self.key = self._file("key", key)
        self.both = self._file("both", chain + key)
        self.locked = self._file("locked", locked)
        self.other_key = self._file("other", other)
        self.no_pem = self._file("jks", b"\xfe\xed\xfe\xed\x00\x00\x00\x02")
        self.empty = self._file("empty", b"")
        self.damaged = self._file("damaged", _cut(chain))
        self.damaged_key = self._file("damaged-key", _cut(key))
        self.missing = str(folder / "missing.pem")
        self.folder = str(folder)

    def _file(self, name: str, content: bytes) -> str:
        path = self._folder / f"{name}.pem"
        path.write_bytes(content)
        return str(path)


def _cut(pem: bytes) -> bytes:
    lines = pem.splitlines(keepends=True)
    return b"".join([lines[0], *lines[2:]])


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("pem"))


def made(files: Files, **names: str) -> AdminConfig:
    """Values that name a file of ``files`` stand for its path."""
    found = {name: getattr(files, value, value) for name, value in names.items()}
    return AdminConfig.of({"security_protocol": "SSL", **found})


def context_of(config: AdminConfig) -> ssl.SSLContext:
    context: ssl.SSLContext = config.security["ssl_context"]
    return context


@pytest.mark.parametrize(
    "names",
    [
        {"ssl_cafile": "ca"},
        {"ssl_cafile": "ca", "ssl_certfile": "chain", "ssl_keyfile": "key"},
        {"ssl_cafile": "ca", "ssl_certfile": "both"},
        {"ssl_certfile": "chain", "ssl_keyfile": "locked", "ssl_password": PASSWORD},
        {"ssl_certfile": "chain", "ssl_keyfile": "key", "ssl_password": "of no use"},
    ],
)
def test_files_make_a_context(files: Files, names: dict[str, str]) -> None:
    config = made(files, **names)
    context = context_of(config)
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.check_hostname
    if "ssl_cafile" in names:
        assert len(context.get_ca_certs()) == 1
    assert set(config.security) == {"security_protocol", "ssl_context"}


def test_a_path_is_as_good_as_a_text(files: Files) -> None:
    config = AdminConfig.of({"security_protocol": "SSL", "ssl_cafile": Path(files.ca)})
    assert len(context_of(config).get_ca_certs()) == 1


def test_without_files_the_system_is_trusted() -> None:
    context = context_of(AdminConfig.of({"security_protocol": "SSL"}))
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)


def test_a_host_s_name_need_not_be_checked(files: Files) -> None:
    settings = {"ssl_cafile": files.ca, "ssl_check_hostname": False}
    context = context_of(AdminConfig.of({"security_protocol": "SSL", **settings}))
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, False)


WRONG: Final[list[tuple[dict[str, str], str]]] = [
    ({"ssl_cafile": "missing"}, r"ssl_cafile = '.*missing.pem': No such file"),
    ({"ssl_cafile": "folder"}, r"ssl_cafile = .*: Is a directory"),
    ({"ssl_cafile": "no_pem"}, r"ssl_cafile = .*no certificate in PEM form.*keytool"),
    ({"ssl_cafile": "empty"}, r"ssl_cafile = .*no certificate in PEM form"),
    ({"ssl_cafile": "key"}, r"ssl_cafile = .* is a PEM file without a certificate"),
    ({"ssl_cafile": "damaged"}, r"ssl_cafile = .* has a damaged certificate"),
    ({"ssl_certfile": "missing"}, r"ssl_certfile = .*No such file"),
    ({"ssl_certfile": "chain"}, r"ssl_certfile = .*without a private key; .* ssl_keyfile"),
    ({"ssl_certfile": "key"}, r"ssl_certfile = .*without a certificate"),
    ({"ssl_certfile": "damaged", "ssl_keyfile": "key"}, r"ssl_certfile = .* is damaged"),
    ({"ssl_certfile": "chain", "ssl_keyfile": "missing"}, r"ssl_keyfile = .*No such file"),
    ({"ssl_certfile": "chain", "ssl_keyfile": "no_pem"}, r"ssl_keyfile = .*no private key in PEM"),
    ({"ssl_certfile": "chain", "ssl_keyfile": "chain"}, r"ssl_keyfile = .*without a private key$"),
    ({"ssl_certfile": "chain", "ssl_keyfile": "damaged_key"}, r"damaged"),
    ({"ssl_certfile": "chain", "ssl_keyfile": "other_key"}, r"is not that of the certificate"),
    ({"ssl_certfile": "chain", "ssl_keyfile": "locked"}, r"encrypted; set ssl_password"),
    (
        {"ssl_certfile": "chain", "ssl_keyfile": "locked", "ssl_password": "wrong"},
        r"ssl_keyfile = .*ssl_password does not open",
    ),
    ({"ssl_keyfile": "key"}, r"ssl_keyfile is given without an ssl_certfile"),
    ({"ssl_password": "secret"}, r"ssl_password is given without an ssl_certfile"),
]


@pytest.mark.parametrize(("names", "said"), WRONG)
def test_what_is_wrong_is_named(files: Files, names: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as told:
        made(files, **names)
    for password in ("wrong", "secret"):
        assert f"{password!r}" not in str(told.value)


@pytest.mark.parametrize("client", [Consumer, Producer, Admin])
def test_every_client_tells_it_when_it_is_made(files: Files, client: Any) -> None:
    with pytest.raises(ConfigError, match=r"ssl_cafile = .*No such file"):
        client(security_protocol="SSL", ssl_cafile=files.missing)
    client(security_protocol="SSL", ssl_cafile=files.ca)


def test_a_context_says_all(files: Files) -> None:
    context = ssl.create_default_context()
    for name, value in (("ssl_cafile", files.ca), ("ssl_check_hostname", False)):
        settings: Mapping[str, Any] = {"ssl_context": context, name: value}
        with pytest.raises(ConfigError, match=f"leave {name} out"):
            AdminConfig.of({"security_protocol": "SSL", **settings})


def test_files_are_never_ignored(files: Files) -> None:
    with pytest.raises(ConfigError, match=r"ssl_cafile is given.*set security_protocol to SSL"):
        AdminConfig.of({"ssl_cafile": files.ca})


def test_a_password_is_never_shown(files: Files) -> None:
    config = made(files, ssl_certfile="chain", ssl_keyfile="locked", ssl_password=PASSWORD)
    assert PASSWORD not in repr(config)


# -- --command-config ----------------------------------------------------------------------------


def told(folder: Path, text: str) -> ssl.SSLContext:
    file = folder / "client.properties"
    file.write_text(f"security.protocol=SSL\n{text}")
    context: ssl.SSLContext = settings_from(str(file))["ssl_context"]
    return context


def test_properties_name_files(files: Files, tmp_path: Path) -> None:
    text = (
        f"ssl.truststore.type=PEM\nssl.truststore.location={files.ca}\n"
        f"ssl.keystore.type=PEM\nssl.keystore.location={files.both}\n"
    )
    assert len(told(tmp_path, text).get_ca_certs()) == 1


def one_line(path: str) -> str:
    return Path(path).read_text().replace("\n", "\\n")


def test_properties_have_what_would_stand_in_files(files: Files, tmp_path: Path) -> None:
    text = (
        f"ssl.truststore.certificates={one_line(files.ca)}\n"
        f"ssl.keystore.certificate.chain={one_line(files.chain)}\n"
        f"ssl.keystore.key={one_line(files.locked)}\nssl.key.password={PASSWORD}\n"
    )
    assert len(told(tmp_path, text).get_ca_certs()) == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ssl.truststore.type=PEM\nssl.truststore.location={key}", "ssl.truststore.location = "),
        ("ssl.keystore.type=PEM\nssl.keystore.location={chain}", "without a private key$"),
        ("ssl.keystore.key=none", "ssl.keystore.key has a private key, and nothing says"),
    ],
)
def test_wrong_properties_are_named(files: Files, tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError, match=f"--command-config .*{said}"):
        told(tmp_path, text.format(key=files.key, chain=files.chain))
