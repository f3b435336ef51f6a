"""slurm.conf of this host, with the files that it includes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fairbank.core.errors import NotFound
from fairbank.slurm.parsers import config
from fairbank.unix_users import find_uid

DEFAULT_PATH = "/etc/slurm/slurm.conf"

SHOWN_SETTINGS = (
    "AccountingStorageEnforce",
    "AccountingStorageTRES",
    "AccountingStorageType",
    "AuthInfo",
    "AuthType",
    "CliFilterPlugins",
    "ClusterName",
    "JobSubmitPlugins",
    "MinJobAge",
    "PrEpParameters",
    "PrEpPlugins",
    "PriorityFlags",
    "PriorityType",
    "PrologSlurmctld",
    "SlurmUser",
)
"""Settings that `scontrol show config` shows and other modules read, in its spelling."""
_DEFAULTS = {"AuthType": "auth/munge", "SlurmUser": "root"}
"""Slurm's defaults of those that slurm.conf may leave out."""
_TEXT_MAX = 4 * 1024 * 1024


def conf_path(config: Mapping[str, str]) -> Path:
    """Return the slurm.conf that slurmctld read."""
    return Path(config.get("SLURM_CONF") or DEFAULT_PATH)


def read_text(path: Path) -> str:
    """Return the start of a file, at most 4 MiB. Raises OSError."""
    with path.open("rb") as file:
        return file.read(_TEXT_MAX).decode(errors="replace")


def conf_settings(path: Path, depth: int = 4) -> dict[str, str]:
    """Return the settings of slurm.conf and its included files.

    Raises NotFound for an unreadable file.
    """
    try:
        conf = config.read_conf(read_text(path))
    except OSError as error:
        remedy = "run this on slurmctld's host, as root or as Slurm's user"
        raise NotFound(
            f"cannot read {path}: {error.strerror}", field="slurm.conf", remedy=remedy
        ) from error
    settings = dict(conf.settings)
    for name in conf.includes if depth else ():
        settings |= conf_settings(path.parent / name, depth - 1)
    return settings


def assumed_config(path: Path) -> dict[str, str]:
    """Return what slurmctld would show of its settings, while it does not answer.

    Raises NotFound.
    """
    settings = conf_settings(path)
    shown = _DEFAULTS | {
        name: settings[name.lower()] for name in SHOWN_SETTINGS if name.lower() in settings
    }
    user = shown["SlurmUser"]
    uid = find_uid(user)  # scontrol shows slurm(64030)
    user = user if uid is None else f"{user}({uid})"
    return {**shown, "SlurmUser": user, "SLURM_CONF": str(path)}
