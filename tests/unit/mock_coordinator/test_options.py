"""The options of a broker: one list of names, one judge of values, every way to give them."""

from __future__ import annotations

import argparse
import dataclasses
import typing
from typing import Any

import pytest

from kip848_client.cli import mock as command_line
from kip848_client.errors import ConfigError
from mock_coordinator import MockBroker, MockCluster, command
from mock_coordinator.options import BrokerOptions, CheckedOptions
from mock_coordinator.threaded import BrokerThread, ClusterThread

EVERYWHERE = [MockBroker, MockCluster, BrokerThread, ClusterThread]
NOT_FROM_A_SHELL = {
    "racks",
    "listen",
    "clock",
    "new_uuid",
    "log_size",
    "check_ownership",
    "assignors",  # by group.consumer.assignors=module:Class
}


def test_what_may_be_written_is_what_is_checked() -> None:
    written = typing.get_type_hints(BrokerOptions)
    checked = typing.get_type_hints(CheckedOptions)
    assert {each.name: checked[each.name] for each in dataclasses.fields(CheckedOptions)} == written


@pytest.mark.parametrize("kind", EVERYWHERE)
def test_a_name_that_is_no_option_is_refused_with_a_near_one(kind: Any) -> None:
    with pytest.raises(TypeError, match="unknown broker option 'profil'; did you mean profile"):
        kind(profil="4.4")
    with pytest.raises(TypeError, match="broker option 'zzz'; known: profile, config, brokers"):
        kind(zzz=1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("profile", 4.4),
        ("profile", "3.9"),
        ("config", ["a=b"]),
        ("brokers", 0),
        ("brokers", True),
        ("brokers", "3"),
        ("racks", "abc"),
        ("racks", [1]),
        ("host", None),
        ("port", -1),
        ("port", 65_536),
        ("listen", "no"),
        ("clock", 5),
        ("new_uuid", b"x" * 16),
        ("security", {"users": {}}),
        ("data_dir", 5),
        ("fsync", None),
        ("log_size", -1),
        ("check_ownership", None),
        ("draft_protocols", "false"),
        ("assignors", "uniform"),
        ("assignors", [object()]),
    ],
)
def test_a_value_that_cannot_be_meant_is_refused_by_its_name(name: str, value: object) -> None:
    options: Any = {name: value}
    with pytest.raises(ConfigError, match=name):
        MockBroker(**options)


def test_a_former_name_is_taken_for_the_new_one() -> None:
    former: Any = {"client_assignors": False}
    assert CheckedOptions.of(former) == CheckedOptions(draft_protocols=False)


def test_there_must_be_a_port_for_each_broker() -> None:
    with pytest.raises(ConfigError, match="not enough ports for 3 brokers"):
        MockCluster(port=65_534)
    assert CheckedOptions.of({"port": 65_533, "brokers": 3}).port == 65_533


@pytest.mark.parametrize("topics", [["t"], {"t": "3"}, {3: 1}, "t"])
def test_topics_are_names_with_numbers(topics: Any) -> None:
    with pytest.raises(ConfigError, match="topics"):
        MockBroker(topics, listen=False)


def test_a_cluster_has_three_brokers_unless_told_otherwise() -> None:
    assert len(MockCluster(listen=False).nodes) == 3
    assert len(MockCluster(listen=False, brokers=2).nodes) == 2
    with pytest.raises(ConfigError, match="use ClusterThread for more than one broker"):
        BrokerThread(brokers=2)


def served(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> dict[str, Any]:
    """What the command line makes of its arguments."""
    given: dict[str, Any] = {}

    def serve(topics: object, **options: object) -> int:
        given.update(options, topics=topics)
        return 0

    monkeypatch.setattr(command, "serve", serve)
    parser = argparse.ArgumentParser()
    command_line.configure(parser)
    assert command_line.run(parser.parse_args(arguments)) == 0
    return given


def test_a_shell_can_say_every_option_that_makes_sense_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = served(monkeypatch)
    assert given.keys() - {"topics", "faults", "metrics_port"} == (
        typing.get_type_hints(BrokerOptions).keys() - NOT_FROM_A_SHELL
    )
    names = {each.name for each in dataclasses.fields(CheckedOptions)}
    defaults = CheckedOptions()
    assert {name: value for name, value in given.items() if name in names} == {
        name: getattr(defaults, name) if name != "config" else {} for name in given if name in names
    }


def test_the_draft_protocols_can_be_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    assert served(monkeypatch)["draft_protocols"] is True
    assert served(monkeypatch, "--no-draft-protocols")["draft_protocols"] is False
    drafts = {10480, 10481, 10482, 10483, 10484, 10485}
    assert drafts <= MockBroker(listen=False).core.api_versions.keys()
    assert not drafts & MockBroker(listen=False, draft_protocols=False).core.api_versions.keys()
