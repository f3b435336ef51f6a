"""Checks of the files that Slurm loads: the Lua plug-ins, and the site factor with its table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from fairbank.core.health import HealthCheck
from fairbank.core.time import iso
from fairbank.slurm.health.slurm_checks import Config, has_lua
from fairbank.slurm.parsers.config import split_parameters

SCRIPTS: Mapping[str, tuple[str, str]] = {
    "job_submit.lua": ("JobSubmitPlugins", "slurmctld"),
    "cli_filter.lua": ("CliFilterPlugins", "submit commands on this host"),
}
"""Lua files, with the setting that loads them if it names lua, and the program that does."""

RULES = tuple(
    f"{name}.lua" for name in "credit plugin policy_file price request rules text".split()
)
"""Files in the directory `fairbank` next to either script."""

SITE_FACTOR, TABLE = "site_factor/fairbank", "/run/fairbank-agent/site_factor"
"""The plug-in, and the default of PrioritySiteFactorParameters (plugins/site_factor/README.md)."""

_OURS = 'loadfile(FOLDER .. "/plugin.lua")'
_CALLED = re.compile(r"""\b(?:dofile|loadfile)\s*\(?\s*["'](/[^"']+)["']""")


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """Lua file where Slurm looks for it.

    `is_ours`: it is Fairbank's, or calls it; then `missing` are the rules that it lacks.
    """

    path: str
    exists: bool
    is_ours: bool
    missing: Sequence[str] = ()


class TableFile(msgspec.Struct, frozen=True, kw_only=True):
    """Table of site factors on disk; `error` says why it cannot be used."""

    path: str
    written: int = 0
    stale_seconds: int = 0
    error: str | None = None


def is_ours(text: str) -> bool:
    """Return True if the text is one of Fairbank's two Lua files."""
    return _OURS in text


def called_files(text: str) -> list[str]:
    """Return the Lua files that the text calls by absolute path, as a site's own script calls
    Fairbank's.
    """
    return _CALLED.findall(text)


def is_loaded(config: Config, name: str) -> bool:
    """Return True if Slurm loads this one of SCRIPTS."""
    return has_lua(config, SCRIPTS[name][0])


def script_checks(scripts: Mapping[str, Script]) -> Iterator[HealthCheck]:
    """Check the Lua files that Slurm loads, by their names."""
    for name, script in scripts.items():
        program = SCRIPTS[name][1]
        directory = script.path.rpartition("/")[0]
        copy = f"cp /opt/fairbank/share/fairbank/plugins/{name} {directory}/"
        rules = (
            f"cp /opt/fairbank/share/fairbank/plugins/fairbank/*.lua {directory}/fairbank/; touch"
            f" {script.path}"
        )
        if not script.exists:
            yield HealthCheck(
                f"{program}: there is no {script.path}, or it cannot be read", False, copy
            )
        elif not script.is_ours:
            remedy = f"{copy}; or let your script call the functions of ours"
            yield HealthCheck(
                f"{program}: {script.path} is not ours, and calls none of ours", False, remedy
            )
        elif script.missing:
            missing = ", ".join(script.missing)
            yield HealthCheck(f"{program}: {script.path} lacks its rules: {missing}", False, rules)
        else:
            yield HealthCheck(f"{program}: {script.path} is ours", True)


def table_path(settings: Mapping[str, str]) -> str:
    """Return the path of the table that slurm.conf gives the plug-in."""
    return (
        split_parameters(settings.get("prioritysitefactorparameters", "")).get("fairbank_table")
        or TABLE
    )


def site_factor_checks(
    config: Config,
    settings: Mapping[str, str],
    status: Mapping[str, Any] | None,
    table: TableFile,
    now: int,
) -> Iterator[HealthCheck]:
    """Check the site factor plug-in and its table.

    Args:
        config: settings as scontrol shows them.
        settings: the lines of slurm.conf, since Slurm 22.05 does not show its site factor plug-in.
        status: the agent's on its table; None if it writes none.
        table: the file.
        now: current time.
    """
    plugin = settings.get("prioritysitefactorplugin", "")
    if plugin != SITE_FACTOR:
        what = f"slurm.conf: PrioritySiteFactorPlugin={plugin or '(none)'}"
        what += ", but the agent writes a table" if status else ", and no table is written for it"
        remedy = (
            f"PrioritySiteFactorPlugin={SITE_FACTOR} in slurm.conf and restart slurmctld; or take"
            " [site_factor] out of the agent's settings"
        )
        yield HealthCheck(what, not status, remedy)
        return
    kind, needed = config.get("PriorityType", ""), "priority/multifactor"
    text = f"{SITE_FACTOR} is called by {kind or 'nothing'}"
    yield HealthCheck(text, kind == needed, f"PriorityType={needed}")
    if status is None:
        text = f"slurm.conf names {SITE_FACTOR}, but the agent writes no table"
        remedy = f'[site_factor] path = "{table.path}" in the agent\'s settings'
        yield HealthCheck(text, False, f"{remedy}; or take the plug-in out of slurm.conf")
        return
    same = status["path"] == table.path
    remedy = (
        f"PrioritySiteFactorParameters=fairbank_table={status['path']} in slurm.conf, or"
        " site_factor.path in the agent's settings"
    )
    yield HealthCheck(
        f"the agent writes site factors to {status['path']}, the plug-in reads {table.path}",
        same,
        remedy,
    )
    if same:
        yield _age_check(table, status, now)


def _age_check(table: TableFile, status: Mapping[str, Any], now: int) -> HealthCheck:
    remedy = (
        status["remedy"]
        or "fairbank agent status shows why it is not written; check that the agent runs"
    )
    if table.error is not None:
        return HealthCheck(f"{table.path}: {table.error}; site factors are 0", False, remedy)
    good = abs(now - table.written) <= table.stale_seconds
    old = "" if good else f", more than {table.stale_seconds} s from now: site factors are 0"
    return HealthCheck(f"{table.path} is of {iso(table.written)}{old}", good, remedy)
