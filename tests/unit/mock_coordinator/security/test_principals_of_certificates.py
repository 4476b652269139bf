"""The names of TLS clients, as Java writes them."""

from __future__ import annotations

import pytest

from mock_coordinator.core.authentication.distinguished_names import Subject, principal_of


@pytest.mark.parametrize(
    ("subject", "principal"),
    [
        (None, "User:ANONYMOUS"),
        ((), "User:"),
        (((("commonName", "alice"),),), "User:CN=alice"),
        (
            (
                (("countryName", "NL"),),
                (("organizationName", "Shop, Inc."),),
                (("organizationalUnitName", "a+b"),),
                (("commonName", "alice"),),
            ),
            "User:CN=alice,OU=a\\+b,O=Shop\\, Inc.,C=NL",
        ),
        (((("commonName", "a"), ("userId", "7")),), "User:CN=a+UID=7"),
        (((("commonName", " #x "),),), "User:CN=\\ \\#x\\ "),
        (((("commonName", "#x#=y"),),), "User:CN=\\#x\\#\\=y"),
        (((("commonName", 'q"\\<>;'),),), 'User:CN=q\\"\\\\\\<\\>\\;'),
        (
            ((("emailAddress", "a@b.c"),), (("commonName", "a"),)),
            "User:CN=a,1.2.840.113549.1.9.1=#16056140622e63",
        ),
    ],
)
def test_names(subject: Subject | None, principal: str) -> None:
    assert principal_of(subject) == principal
