"""Settings files in memory, and the settings or the error that they give."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from fairbank.core.errors import InvalidInput
from fairbank.wlm.config.loader import LoadedSettings, load_settings
from fairbank.wlm.core.settings import WlmSettings

CONF, TOML = "slurm.conf", "wlm.toml"
MACHINE = "NodeName=n[1-4] CPUs=4 RealMemory=1000\nPartitionName=main Nodes=n[1-4]\n"
MACHINE_TOML = """
[[nodes]]
node_name = "n[1-4]"
cpus = 4
real_memory = 1000
[[partitions]]
partition_name = "main"
nodes = "n[1-4]"
"""


def load(name: str, files: Mapping[str, str | bytes]) -> LoadedSettings:
    """Load a file of a directory that exists in memory only."""

    def read(path: str) -> bytes:
        if path not in files:
            raise FileNotFoundError(2, "No such file or directory", path)
        content = files[path]
        return content.encode() if isinstance(content, str) else content

    return load_settings(name, read)


def conf(text: str, **others: str) -> WlmSettings:
    """Return the settings of a slurm.conf; `others` are files beside it."""
    return load(CONF, {CONF: text, **others}).settings


def toml(text: str) -> WlmSettings:
    """Return the settings of a wlm.toml."""
    return load(TOML, {TOML: text}).settings


def error(name: str, files: Mapping[str, str | bytes]) -> InvalidInput:
    """Return the error of a file."""
    with pytest.raises(InvalidInput) as info:
        load(name, files)
    return info.value


def conf_error(text: str | bytes, **others: str) -> InvalidInput:
    """Return the error of a slurm.conf."""
    return error(CONF, {CONF: text, **others})


def toml_error(text: str | bytes) -> InvalidInput:
    """Return the error of a wlm.toml."""
    return error(TOML, {TOML: text})
