"""Check that Slurm loads the files of this release: Lua files beside slurm.conf, and the site
factor plug-in, which Slurm 22.05 does not show.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from fairbank.core.errors import NotFound
from fairbank.slurm.health import plugin_files
from fairbank.slurm.health.doctor import find_scripts, find_table
from fairbank.slurm.health.plugin_files import RULES, TABLE, TableFile
from fairbank.slurm.parsers.config import read_conf
from fairbank.slurm.site_factor import SiteFactorTable, encode
from fairbank.slurm.slurm_conf import conf_path, conf_settings
from tests.slurm.health.recorded_health import CONFIG, failed_checks

SITE_FACTOR_CONFIG = {"prioritysitefactorplugin": "site_factor/fairbank"}
STATUS: dict[str, Any] = {
    "path": TABLE,
    "written": 1_000,
    "values": 3,
    "error": None,
    "remedy": None,
}
FRESH = TableFile(path=TABLE, written=1_000, stale_seconds=600)


@pytest.fixture
def folder(checkout: Path, tmp_path: Path) -> Path:
    """Return a directory with slurm.conf and all of Fairbank's Lua files."""
    shutil.copytree(checkout / "plugins" / "fairbank", tmp_path / "fairbank")
    for name in plugin_files.SCRIPTS:
        shutil.copy(checkout / "plugins" / name, tmp_path)
    return tmp_path


def failed_script_checks(folder: Path, **more: str) -> list[str]:
    config = {
        "SLURM_CONF": str(folder / "slurm.conf"),
        "JobSubmitPlugins": "all_partitions,lua",
        "CliFilterPlugins": "lua",
        **more,
    }
    return failed_checks(plugin_files.script_checks(find_scripts(config)))


# ------------------------------------------------------------------ Lua


def test_installed_files_are_recognised(folder: Path, checkout: Path) -> None:
    assert failed_script_checks(folder) == []
    assert sorted(RULES) == sorted(
        path.name for path in (checkout / "plugins" / "fairbank").glob("*.lua")
    )


def test_missing_foreign_or_incomplete_files_are_reported(folder: Path) -> None:
    (folder / "cli_filter.lua").write_text(
        "function slurm_cli_pre_submit(options, offset) return slurm.SUCCESS end\n"
    )
    (folder / "fairbank" / "price.lua").unlink()
    assert failed_script_checks(folder) == [
        f"slurmctld: {folder}/job_submit.lua lacks its rules: price.lua",
        (
            f"submit commands on this host: {folder}/cli_filter.lua is not ours, and calls none of"
            " ours"
        ),
    ]
    (folder / "job_submit.lua").unlink()
    assert (
        failed_script_checks(folder)[0]
        == f"slurmctld: there is no {folder}/job_submit.lua, or it cannot be read"
    )


def test_unconfigured_scripts_are_not_checked(folder: Path) -> None:
    (folder / "job_submit.lua").unlink()
    assert failed_script_checks(folder, JobSubmitPlugins="") == []


def test_site_script_may_call_the_plugin(folder: Path) -> None:
    (folder / "job_submit.lua").rename(folder / "fairbank_job_submit.lua")
    (folder / "job_submit.lua").write_text(
        f'-- ours first\ndofile("{folder}/fairbank_job_submit.lua")\n'
    )
    assert failed_script_checks(folder) == []


# ------------------------------------------------------------------ slurm.conf


def test_slurm_conf_is_read_as_slurm_does(tmp_path: Path) -> None:
    (tmp_path / "slurm.conf").write_text(
        "clustername=lab # a note\n#SlurmUser=x\nInclude more.conf\nPriorityType = \\\n "
        ' "priority/multifactor"\n'
    )
    (tmp_path / "more.conf").write_text(
        "prioritySiteFactorPlugin=site_factor/fairbank\nNodeName=a CPUs=2\n"
    )
    settings = conf_settings(tmp_path / "slurm.conf")
    assert settings["clustername"] == "lab"
    assert settings["prioritytype"] == "priority/multifactor"
    assert settings["prioritysitefactorplugin"] == "site_factor/fairbank"
    assert "slurmuser" not in settings
    assert read_conf("") == ({}, [])


def test_missing_or_recursive_slurm_conf(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="No such file"):
        conf_settings(tmp_path / "slurm.conf")
    (tmp_path / "slurm.conf").write_text("Include slurm.conf\nA=b\n")
    assert conf_settings(tmp_path / "slurm.conf") == {"a": "b"}
    assert conf_path({}) == Path("/etc/slurm/slurm.conf")
    assert conf_path(CONFIG) == Path("/lab/conf/slurm.conf")


# ------------------------------------------------------------------ site factor


def test_site_factor_plugin_matches_the_agent() -> None:
    assert (
        failed_checks(
            plugin_files.site_factor_checks(CONFIG, SITE_FACTOR_CONFIG, STATUS, FRESH, 1_600)
        )
        == []
    )
    assert failed_checks(plugin_files.site_factor_checks(CONFIG, {}, None, FRESH, 1_600)) == []


@pytest.mark.parametrize(
    ("settings", "status", "table", "expected"),
    [
        (
            {},
            STATUS,
            FRESH,
            "slurm.conf: PrioritySiteFactorPlugin=(none), but the agent writes a table",
        ),
        (
            SITE_FACTOR_CONFIG,
            None,
            FRESH,
            "slurm.conf names site_factor/fairbank, but the agent writes no table",
        ),
        (
            SITE_FACTOR_CONFIG,
            STATUS,
            TableFile(path="/x"),
            (
                "the agent writes site factors to /run/fairbank-agent/site_factor, the plug-in"
                " reads /x"
            ),
        ),
        (
            SITE_FACTOR_CONFIG,
            STATUS,
            TableFile(path=TABLE, written=999, stale_seconds=600),
            (
                "/run/fairbank-agent/site_factor is of 1970-01-01T00:16:39Z, more than 600 s from"
                " now: site factors are 0"
            ),
        ),
        (
            SITE_FACTOR_CONFIG,
            STATUS,
            TableFile(path=TABLE, error="its checksum is wrong"),
            "/run/fairbank-agent/site_factor: its checksum is wrong; site factors are 0",
        ),
    ],
)
def test_site_factor_faults_are_reported(
    settings: dict[str, str], status: dict[str, Any] | None, table: TableFile, expected: str
) -> None:
    assert failed_checks(
        plugin_files.site_factor_checks(CONFIG, settings, status, table, 1_600)
    ) == [expected]


def test_site_factor_needs_priority_multifactor() -> None:
    config = {**CONFIG, "PriorityType": "priority/basic"}
    assert failed_checks(
        plugin_files.site_factor_checks(config, SITE_FACTOR_CONFIG, STATUS, FRESH, 1_600)
    ) == ["site_factor/fairbank is called by priority/basic"]


def test_table_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "table"
    assert find_table(str(path)).error == "No such file or directory"
    path.write_bytes(b"x")
    assert find_table(str(path)).error == "it is not a table of site factors"
    path.write_bytes(encode(SiteFactorTable(7, 60, {"cpu": "cpu"}, {})))
    assert find_table(str(path)) == TableFile(path=str(path), written=7, stale_seconds=60)
    assert plugin_files.table_path(
        {"prioritysitefactorparameters": f"fairbank_poll_interval=2,fairbank_table={path}"}
    ) == str(path)
    assert plugin_files.table_path({}) == TABLE
