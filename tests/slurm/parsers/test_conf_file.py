"""Settings read from slurm.conf while slurmctld is down."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from fairbank.slurm.health import doctor, plugin_files, slurm_checks
from fairbank.slurm.parsers import config
from fairbank.slurm.parsers.conf_lines import conf_lines
from fairbank.slurm.parsers.config import split_list, split_parameters
from fairbank.slurm.slurm_conf import SHOWN_SETTINGS
from tests.slurm.health.recorded_health import CONFIG


def _settings_named_in(source: ModuleType | Callable[..., object]) -> set[str]:
    """Return the string constants that are a setting's name as slurmctld prints it."""
    nodes = ast.walk(ast.parse(inspect.getsource(source)))
    return {
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    } & CONFIG.keys()


def test_doctor_settings_are_read_from_slurm_conf() -> None:
    """A missing setting would be checked as if it were unset, and an extra one would never be
    read.
    """
    readers = (doctor, slurm_checks, plugin_files, config.slurm_uid)
    assert set(SHOWN_SETTINGS) == {
        name for reader in readers for name in _settings_named_in(reader)
    }


@pytest.mark.parametrize(
    ("value", "values", "named"),
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
def test_list_settings_are_split(
    value: str, values: list[str], named: dict[str, str] | None
) -> None:
    assert split_list(value) == values
    assert split_parameters(value) == (
        named if named is not None else {"fairbank_poll_interval": "1", "fairbank_socket": "/x=y"}
    )


@pytest.mark.parametrize(
    ("config", "socket"),
    [
        ({}, None),
        ({"AuthInfo": "cred_expire=120,Socket=/run/m.socket"}, "/run/m.socket"),
        ({"AuthInfo": "ttl=10"}, None),
    ],
)
def test_munge_socket_is_read(config: dict[str, str], socket: str | None) -> None:
    assert doctor.munge_socket(config) == socket


def test_doctor_uses_the_defaults_of_the_plugins(checkout: Path) -> None:
    """For settings that slurm.conf omits, the doctor uses the defaults of the plug-ins' C code."""

    def default(file: str, pattern: str) -> str:
        (value,) = re.findall(pattern, (checkout / "plugins" / file).read_text())
        return str(value)

    prep = r"client_settings_t settings = \{\s+\.socket = \"([^\"]+)\""
    assert default("prep/prep_fairbank.c", prep) == slurm_checks.SOCKET
    assert (
        float(
            default(
                "prep/prep_fairbank.c", r"client_settings_t settings = \{[^}]*\s\.patience = (\d+)"
            )
        )
        == slurm_checks.PLUGIN_TIMEOUT_SECONDS
    )
    table = r"\(reload_settings_t\) \{\s+\.path = \"([^\"]+)\""
    assert default("site_factor/site_factor_fairbank.c", table) == plugin_files.TABLE


def test_comment_ends_with_its_line() -> None:
    """A backslash in a comment continues nothing, as in slurmctld."""
    conf = config.read_conf("ClusterName=a # since \\\nSlurmUser=slurm\n")
    assert conf.settings == {"clustername": "a", "slurmuser": "slurm"}


def test_continued_lines_are_joined_without_a_blank() -> None:
    conf = config.read_conf("PrEpPlugins=prep/fairbank,\\\nprep/script\nMailProg=/bin/a\\#b\n")
    assert conf.settings == {"prepplugins": "prep/fairbank,prep/script", "mailprog": "/bin/a#b"}


def test_line_has_the_number_of_its_first_part() -> None:
    assert list(conf_lines("\n\\\n A=1 \\\\\n# \\\nB=2\\")) == [(2, "A=1 \\"), (5, "B=2")]
