"""Whether the files that Slurm loads are ours: the Lua plug-ins, and the site factor with its table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from fairbank.core.check import HealthCheck
from fairbank.core.time import iso
from fairbank.slurm.compare.health import Config, loads_lua
from fairbank.slurm.parsers.scontrol import parameters

SCRIPTS: Mapping[str, tuple[str, str]] = {
    "job_submit.lua": ("JobSubmitPlugins", "slurmctld"),
    "cli_filter.lua": ("CliFilterPlugins", "submit commands on this host"),
}
"""What Slurm loads when this setting names lua, and who does."""

RULES = (
    "credit.lua",
    "plugin.lua",
    "policy_file.lua",
    "price.lua",
    "request.lua",
    "rules.lua",
    "text.lua",
)
"""What stands in `fairbank` beside either."""

SITE_FACTOR, TABLE = "site_factor/fairbank", "/run/fairbank-agent/site_factor"
"""The plug-in, and the table that it takes when PrioritySiteFactorParameters do not say (plugins/site_factor/README.md)."""

_OURS = 'loadfile(FOLDER .. "/plugin.lua")'
_CALLED = re.compile(r"""\b(?:dofile|loadfile)\s*\(?\s*["'](/[^"']+)["']""")


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """A Lua file where Slurm looks for it: whether it is ours or calls ours, and which of its rules are missing then."""

    path: str
    there: bool
    ours: bool
    missing: Sequence[str] = ()


class TableFile(msgspec.Struct, frozen=True, kw_only=True):
    """The table of site factors on the disk: when it was written, or what is wrong with it."""

    path: str
    written: int = 0
    stale_seconds: int = 0
    wrong: str | None = None


def is_ours(text: str) -> bool:
    """Whether this Lua file is one of our two."""
    return _OURS in text


def calls(text: str) -> list[str]:
    """The Lua files that this one calls by their whole path, as a script of the site's own calls ours."""
    return _CALLED.findall(text)


def is_loaded(config: Config, name: str) -> bool:
    """Whether Slurm was told to load this one of SCRIPTS."""
    return loads_lua(config, SCRIPTS[name][0])


def scripts(found: Mapping[str, Script]) -> Iterator[HealthCheck]:
    """The Lua files that Slurm was told to load, by their names."""
    for name, script in found.items():
        who = SCRIPTS[name][1]
        where = script.path.rpartition("/")[0]
        copy = f"cp /opt/fairbank/share/fairbank/plugins/{name} {where}/"
        rules = f"cp /opt/fairbank/share/fairbank/plugins/fairbank/*.lua {where}/fairbank/; touch {script.path}"
        if not script.there:
            yield HealthCheck(
                f"{who}: there is no {script.path}, or it cannot be read", False, copy
            )
        elif not script.ours:
            remedy = f"{copy}; or let yours call ours (docs/howto/submission-policy.md, Beside a script of your own)"
            yield HealthCheck(
                f"{who}: {script.path} is not ours, and calls none of ours", False, remedy
            )
        elif script.missing:
            yield HealthCheck(
                f"{who}: {script.path} lacks its rules: {', '.join(script.missing)}", False, rules
            )
        else:
            yield HealthCheck(f"{who}: {script.path} is ours", True)


def parameter(settings: Mapping[str, str]) -> str:
    """The table that slurm.conf lets the plug-in read."""
    return (
        parameters(settings.get("prioritysitefactorparameters", "")).get("fairbank_table") or TABLE
    )


def site_factor(
    config: Config,
    settings: Mapping[str, str],
    status: Mapping[str, Any] | None,
    table: TableFile,
    now: int,
) -> Iterator[HealthCheck]:
    """Slurm 22.05 does not tell its site factor plug-in, so slurm.conf is asked (`settings`); `status` is the agent's of its table."""
    loads = settings.get("prioritysitefactorplugin", "") == SITE_FACTOR
    if not loads:
        what = f"slurm.conf: PrioritySiteFactorPlugin={settings.get('prioritysitefactorplugin') or '(none)'}"
        remedy = f"PrioritySiteFactorPlugin={SITE_FACTOR} in slurm.conf and restart slurmctld; or take [site_factor] out of the agent's settings"
        yield HealthCheck(
            f"{what}, but the agent writes a table"
            if status
            else f"{what}, and no table is written for it",
            not status,
            remedy,
        )
        return
    kind = config.get("PriorityType", "")
    yield HealthCheck(
        f"{SITE_FACTOR} is asked by {kind or 'nobody'}",
        kind == "priority/multifactor",
        "PriorityType=priority/multifactor",
    )
    if status is None:
        yield HealthCheck(
            f"slurm.conf names {SITE_FACTOR}, but the agent writes no table",
            False,
            _write(table.path),
        )
        return
    same = status["path"] == table.path
    remedy = f"PrioritySiteFactorParameters=fairbank_table={status['path']} in slurm.conf, or site_factor.path in the agent's settings"
    yield HealthCheck(
        f"the agent writes site factors to {status['path']}, the plug-in reads {table.path}",
        same,
        remedy,
    )
    if same:
        yield _fresh(table, status, now)


def _fresh(table: TableFile, status: Mapping[str, Any], now: int) -> HealthCheck:
    remedy = (
        status["remedy"]
        or "fairbank agent status tells why it is not written again; see that the agent runs"
    )
    if table.wrong is not None:
        return HealthCheck(f"{table.path}: {table.wrong}; site factors are 0", False, remedy)
    good = abs(now - table.written) <= table.stale_seconds
    old = "" if good else f", more than {table.stale_seconds} s from now: site factors are 0"
    return HealthCheck(f"{table.path} is of {iso(table.written)}{old}", good, remedy)


def _write(path: str) -> str:
    return f'[site_factor] path = "{path}" in the agent\'s settings; or take the plug-in out of slurm.conf'
