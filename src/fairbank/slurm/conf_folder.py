"""Files beside slurm.conf on this host and the table of site factors, for
`compare.plugin_files`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fairbank.core.errors import InvalidInput
from fairbank.slurm.compare.plugin_files import (
    RULES,
    SCRIPTS,
    Script,
    TableFile,
    calls,
    is_loaded,
    is_ours,
)
from fairbank.slurm.conf_file import conf_path
from fairbank.slurm.site_factor import SIZE_MAX, decode

_TEXT_MAX = 4 * 1024 * 1024


def find_scripts(config: Mapping[str, str]) -> dict[str, Script]:
    """The Lua files that Slurm was told to load."""
    folder = conf_path(config).parent
    return {name: _script(folder / name) for name in SCRIPTS if is_loaded(config, name)}


def _script(path: Path) -> Script:
    text = _text(path)
    if text is None:
        return Script(path=str(path), there=False, ours=False)
    for each in (path, *map(Path, calls(text)[:16])):
        if is_ours(_text(each) or ""):
            missing = [name for name in RULES if not (each.parent / "fairbank" / name).is_file()]
            return Script(path=str(path), there=True, ours=True, missing=missing)
    return Script(path=str(path), there=True, ours=False)


def _text(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return file.read(_TEXT_MAX).decode(errors="replace")
    except OSError:
        return None


def find_table(path: str) -> TableFile:
    """The table of site factors there."""
    try:
        with Path(path).open("rb") as file:
            table = decode(file.read(SIZE_MAX + 1))
    except OSError as bad:
        return TableFile(path=path, wrong=str(bad.strerror))
    except InvalidInput as bad:
        return TableFile(path=path, wrong=bad.message)
    return TableFile(path=path, written=table.written, stale_seconds=table.stale_seconds)
