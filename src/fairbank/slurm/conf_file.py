"""slurm.conf on this host, with what it includes."""

from __future__ import annotations

import pwd
from collections.abc import Mapping
from pathlib import Path

from fairbank.core.errors import NotFound
from fairbank.slurm.parsers.scontrol import read_conf

USUAL = "/etc/slurm/slurm.conf"

TOLD = (
    "AccountingStorageTRES",
    "AccountingStorageType",
    "AuthInfo",
    "AuthType",
    "CliFilterPlugins",
    "ClusterName",
    "JobSubmitPlugins",
    "PrEpParameters",
    "PrEpPlugins",
    "PriorityFlags",
    "PriorityType",
    "PrologSlurmctld",
    "SlurmUser",
)
"""What `scontrol show config` tells and others want to know, in its spelling."""
_UNTOLD = {"AuthType": "auth/munge", "SlurmUser": "root"}
"""What Slurm takes where slurm.conf says nothing."""
_TEXT_MAX = 4 * 1024 * 1024
_DEPTH = 4


def conf_path(config: Mapping[str, str]) -> Path:
    """The slurm.conf that slurmctld read."""
    return Path(config.get("SLURM_CONF") or USUAL)


def conf_settings(path: Path, depth: int = _DEPTH) -> dict[str, str]:
    """The settings of slurm.conf and of what it includes. Raises NotFound for a file that cannot be read."""
    try:
        with path.open("rb") as file:
            conf = read_conf(file.read(_TEXT_MAX).decode(errors="replace"))
    except OSError as bad:
        remedy = "run this on slurmctld's host, as root or as Slurm's user"
        raise NotFound(
            f"cannot read {path}: {bad.strerror}", field="slurm.conf", remedy=remedy
        ) from bad
    found = dict(conf.settings)
    for name in conf.includes if depth else ():
        found |= conf_settings(path.parent / name, depth - 1)
    return found


def stated(path: Path) -> dict[str, str]:
    """What slurmctld would tell of its settings, by its slurm.conf, for when it is away. Raises NotFound for a file that cannot be read."""
    found = conf_settings(path)
    told = _UNTOLD | {name: found[name.lower()] for name in TOLD if name.lower() in found}
    return {**told, "SlurmUser": _with_number(told["SlurmUser"]), "SLURM_CONF": str(path)}


def _with_number(user: str) -> str:
    """A user as scontrol tells them: slurm(64030)."""
    try:
        return f"{user}({pwd.getpwnam(user).pw_uid})"
    except KeyError:
        return user
