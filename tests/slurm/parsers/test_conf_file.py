"""Settings that are read from slurm.conf while slurmctld is down."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from fairbank.slurm.commands import SHOWN_SETTINGS
from fairbank.slurm.health import doctor, plugin_files, slurm_checks
from fairbank.slurm.parsers import config
from fairbank.slurm.parsers.config import split_list, split_parameters
from tests.slurm.health.recorded_health import CONFIG


def _settings_named_in(source: ModuleType | Callable[..., object]) -> set[str]:
    """Return the texts that are, whole, the name of a setting as slurmctld prints it."""
    nodes = ast.walk(ast.parse(inspect.getsource(source)))
    return {
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    } & CONFIG.keys()


def test_what_the_doctor_reads_is_what_is_taken_from_slurm_conf() -> None:
    """Neither less, which would be judged as if it were not set, nor more, which nobody reads."""
    readers = (doctor, slurm_checks, plugin_files, config.slurm_uid)
    assert set(SHOWN_SETTINGS) == {
        name for reader in readers for name in _settings_named_in(reader)
    }


@pytest.mark.parametrize(
    ("value", "words", "named"),
    [
        ("", [], {}),
        (" lua , all_partitions,,", ["lua", "all_partitions"], {"lua": "", "all_partitions": ""}),
        (
            "fairbank_poll_interval=1, fairbank_socket = /x=y",
            ["fairbank_poll_interval=1", "fairbank_socket = /x=y"],
            None,
        ),
    ],
)
def test_settings_that_are_lists(
    value: str, words: list[str], named: dict[str, str] | None
) -> None:
    assert split_list(value) == words
    assert split_parameters(value) == (
        named if named is not None else {"fairbank_poll_interval": "1", "fairbank_socket": "/x=y"}
    )


@pytest.mark.parametrize(
    ("said", "socket"),
    [
        ({}, None),
        ({"AuthInfo": "cred_expire=120,Socket=/run/m.socket"}, "/run/m.socket"),
        ({"AuthInfo": "ttl=10"}, None),
    ],
)
def test_where_munged_listens(said: dict[str, str], socket: str | None) -> None:
    assert doctor.munge_socket(said) == socket


def test_doctor_uses_the_defaults_of_the_plugins(checkout: Path) -> None:
    """The doctor judges a slurm.conf that says nothing of them by what stands in C."""

    def default(file: str, form: str) -> str:
        (found,) = re.findall(form, (checkout / "plugins" / file).read_text())
        return str(found)

    prep = r"client_settings_t settings = \{\s+\.socket = \"([^\"]+)\""
    assert default("prep/prep_fairbank.c", prep) == slurm_checks.SOCKET
    assert (
        float(
            default(
                "prep/prep_fairbank.c", r"client_settings_t settings = \{[^}]*\s\.patience = (\d+)"
            )
        )
        == slurm_checks.PATIENCE_SECONDS
    )
    table = r"\(reload_settings_t\) \{\s+\.path = \"([^\"]+)\""
    assert default("site_factor/site_factor_fairbank.c", table) == plugin_files.TABLE
