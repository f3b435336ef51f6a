"""Control groups of runs: the kernel's list of the processes of a run, whatever they do.

The groups limit nothing. They are made in the group of the node daemon, in the hierarchy of version
2 or in one of version 1, if the daemon may do so.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from fairbank.core.os_errors import translate_os_error

PROCESSES = "cgroup.procs"
# Hierarchies of version 1 in which a new group limits nothing and needs no setting.
_VERSION_1 = ("pids", "freezer")


class ControlGroups:
    """Control groups of the runs on one node. Without a parent group, no run has one."""

    def __init__(self, spool: Path, *, allowed: bool) -> None:
        """Find the parent group.

        Args:
            spool: spool directory of the node. Its number makes the names of the groups unique.
            allowed: False: no groups are made.
        """
        self._prefix = group_prefix(spool)
        usable = (parent for parent in _own_groups() if allowed and self._is_usable(parent))
        self.parent = next(usable, None)

    def _is_usable(self, parent: Path) -> bool:
        """Return True if this process can make groups there, and move its children into them."""
        trial = parent / self._prefix
        try:
            trial.mkdir()
            trial.rmdir()
        except OSError:
            return False
        return os.access(parent / PROCESSES, os.W_OK)

    def create(self, name: str) -> str:
        """Return the directory of a new group; empty if there are none. Raises FairbankError."""
        if self.parent is None:
            return ""
        path = self.parent / f"{self._prefix}.{name}"
        try:
            path.mkdir(exist_ok=True)
        except OSError as error:
            raise translate_os_error(error, f"cannot create the control group {path}") from error
        return str(path)


def group_prefix(spool: Path) -> str:
    """Return the beginning of the names of the groups of a node, by its spool directory."""
    status = spool.stat()
    return f"fairbank.{status.st_dev:x}.{status.st_ino:x}"


def group_processes(group: str) -> list[int]:
    """Return the process ids of a group; none if it is gone."""
    try:
        return [int(pid) for pid in (Path(group) / PROCESSES).read_text().split()]
    except OSError:
        return []


def remove_group(group: str) -> None:
    """Remove a group, if it has no process."""
    with contextlib.suppress(OSError):
        Path(group).rmdir()


def _own_groups() -> Iterator[Path]:
    """Yield the directories of the groups that this process is in, that of version 2 first."""
    groups = (own_group(controllers) for controllers in ("", *_VERSION_1))
    return filter(None, groups)


def own_group(controller: str) -> Path | None:
    """Return the directory of the group of this process in the hierarchy of a controller.

    None if it is not mounted, or has others besides; empty: that of version 2.
    """
    mounts = _mounts()
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == controller and controller in mounts:
            root, directory = mounts[controller]
            return Path(directory) / os.path.relpath(path, root)
    return None


def _mounts() -> dict[str, tuple[str, str]]:
    """Return root and directory of the mounted hierarchies by controller; version 2 has none."""
    mounts = {}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields, _, system = line.partition(" - ")
        _, _, _, root, directory, *_ = fields.split()
        kind, _, options = system.split()
        if kind == "cgroup2":
            mounts[""] = root, directory
        elif kind == "cgroup":
            mounts |= dict.fromkeys(options.split(","), (root, directory))
    return mounts
