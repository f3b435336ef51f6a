"""Settings file of the agent (TOML), read strictly. Each error names the key and the remedy.

It has the agent's own settings and those of the periodic jobs that speak to Slurm.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import msgspec

from fairbank.agent.settings import Absolute, AgentSettings, Seconds
from fairbank.core.errors import FairbankError, Forbidden, InvalidInput, NotFound
from fairbank.core.settings_file import parse_toml, read_whole
from fairbank.core.validation import describe_invalid_setting
from fairbank.priority.site_factor import Bend, RuleName, idle_keys
from fairbank.rest.client import parse_address


class SiteFactorSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Table of site factors: it adds credit left and closeness of expiry to the priority of jobs.

    Slurm's site_factor/fairbank reads it; it is written only if `path` is set. `cluster`: its name
    in the bank; needed only if the bank has several. `refresh`: seconds between two tables.
    `stale`: seconds after which a table is ignored. `weight`: priority for full credit that
    expires now. `rule`: value of less credit and later ends; the tables `credit` and `expiry`
    refine it. `token_file`: token of a user who may see all projects and allocations; default: as
    for the rest.
    """

    path: Absolute | None = None
    cluster: str | None = None
    refresh: Seconds = 15.0
    stale: Annotated[int, msgspec.Meta(ge=1, le=86_400, extra={"unit": "seconds"})] = 600
    weight: Annotated[int, msgspec.Meta(ge=0, le=1_000_000_000)] = 1_000
    rule: RuleName = "linear"
    credit: Bend = Bend()
    expiry: Bend = Bend()
    token_file: Absolute | None = None


class ReleaseSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Release of jobs that were held for lack of credit, once the bank would pay for them.

    If `when_paid` is false, an operator releases them. `every`: seconds between two checks of
    Slurm's queue. `again`: seconds until the same job is checked again. `token_file`: token of a
    user who may see all projects; default: as for the rest. Slurm's commands must be in the
    agent's PATH.
    """

    when_paid: bool = False
    every: Seconds = 60.0
    again: Annotated[float, msgspec.Meta(ge=60, le=86_400, extra={"unit": "seconds"})] = 600.0
    token_file: Absolute | None = None


class SlurmAgentSettings(AgentSettings, frozen=True, forbid_unknown_fields=True):
    """All settings of the agent.

    `terms` hold for every partition; a table under `partitions` changes some for one. `log`: JSON
    or short lines; "auto" is JSON, but on a terminal short lines and only warnings.
    """

    site_factor: SiteFactorSettings = SiteFactorSettings()
    release: ReleaseSettings = ReleaseSettings()


SITE_FILE = "/etc/fairbank/agent.toml"


def settings_file(named: str | None) -> Path:
    """Return the named file, else that of FAIRBANK_AGENT_CONFIG, else the site's."""
    return Path(named or os.environ.get("FAIRBANK_AGENT_CONFIG") or SITE_FILE)


def read_agent_settings(path: Path) -> SlurmAgentSettings:
    """Read the file at `path`.

    Raises:
        NotFound: it does not exist.
        Forbidden: it may not be read.
        InvalidInput: a key is wrong; the error names it.
    """
    try:
        with path.open("rb") as file:
            content = read_whole(file, str(path), field="config")
    except PermissionError as error:
        remedy = "run the command as the agent's user"
        text = f"you may not read the settings {path}"
        raise Forbidden(text, field="config", remedy=remedy) from error
    except OSError as error:
        remedy = "name the file with --config; an empty one is enough if the defaults fit"
        text = f"cannot read the settings {path}: {error.strerror}"
        raise NotFound(text, field="config", remedy=remedy) from error
    try:
        return agent_settings(content)
    except FairbankError as bad:
        raise type(bad)(f"{path}: {bad.message}", field=bad.field, remedy=bad.remedy) from bad


def agent_settings(content: bytes) -> SlurmAgentSettings:
    """Return the settings in a TOML text. Raises InvalidInput with the key."""
    table = parse_toml(content, "this", field="config")
    try:
        settings = msgspec.convert(_with_default_terms(table), SlurmAgentSettings)
    except msgspec.ValidationError as bad:
        raise describe_invalid_setting(bad, table, SlurmAgentSettings) from bad
    parse_address(settings.bank.server, field="bank.server")
    senders, factor = settings.senders, settings.site_factor
    if senders.minimum > senders.maximum:
        text, remedy = "senders.minimum is more than senders.maximum", "at most senders.maximum"
        raise InvalidInput(text, field="senders.minimum", remedy=remedy)
    if factor.stale <= factor.refresh:
        text = "site_factor.stale is not longer than site_factor.refresh"
        remedy = "more than site_factor.refresh"
        raise InvalidInput(text, field="site_factor.stale", remedy=remedy)
    for fraction, bend in (("credit", factor.credit), ("expiry", factor.expiry)):
        for name, rule in idle_keys(factor.rule, bend):
            field, line = f"site_factor.{fraction}.{name}", f'site_factor.rule = "{rule}"'
            text, remedy = f"{field} is only for {line}", f"write {line}, or leave it out"
            raise InvalidInput(text, field=field, remedy=remedy)
    return settings


def _with_default_terms(table: dict[str, object]) -> dict[str, object]:
    """Return the table with the terms of all filled in where a partition has none of its own."""
    terms, partitions = table.get("terms", {}), table.get("partitions")
    if not isinstance(terms, dict) or not isinstance(partitions, dict):
        return table
    return table | {
        "partitions": {
            name: terms | own if isinstance(own, dict) else own for name, own in partitions.items()
        }
    }
