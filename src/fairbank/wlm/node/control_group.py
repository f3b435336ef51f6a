"""Control groups of runs: the kernel's list of the processes of a run, whatever they do.

They are made in the group of the node daemon, in a hierarchy of version 1 or in that of version 2,
if the daemon may do so. By themselves they limit nothing.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from fairbank.core.os_errors import translate_os_error

SetGroup = Callable[[Path], None]
"""Function that writes what is needed into the files of a new group."""

PROCESSES = "cgroup.procs"
# Hierarchies of version 1 in which a new group limits nothing and needs no setting.
_VERSION_1 = ("pids", "freezer")


class ControlGroups:
    """Control groups of the runs on one node, below that of the node daemon.

    Without a parent group, no run has one.
    """

    def __init__(self, spool: Path, parents: Iterable[Path], trial: SetGroup) -> None:
        """Find the first parent group that can be used.

        Args:
            spool: spool directory of the node. Its number makes the names of the groups unique.
            parents: groups of this process, such as `own_groups` returns.
            trial: sets what is needed in a new group. Raises OSError if that is not possible.
        """
        status = spool.stat()
        self._prefix = f"fairbank.{status.st_dev:x}.{status.st_ino:x}"
        usable = (parent for parent in parents if self._is_usable(parent, trial))
        self.parent = next(usable, None)

    def _is_usable(self, parent: Path, trial: SetGroup) -> bool:
        path = parent / f"{self._prefix}.trial"
        try:
            path.mkdir(exist_ok=True)
            trial(path)
        except OSError:
            return False
        else:
            return True
        finally:
            remove_group(str(path))

    def create(self, name: str, setting: SetGroup | None = None) -> str:
        """Return the directory of a new group; empty if there are none.

        Args:
            name: name of the run.
            setting: sets what is needed in the group.

        Raises:
            FairbankError: the group cannot be made or set.
        """
        if self.parent is None:
            return ""
        path = self.parent / f"{self._prefix}.{name}"
        try:
            path.mkdir(exist_ok=True)
            if setting is not None:
                setting(path)
        except OSError as error:
            remove_group(str(path))  # the caller does not know its name yet
            raise translate_os_error(error, f"cannot create the control group {path}") from error
        return str(path)


def check_processes(group: Path) -> None:
    """Raise OSError if this process cannot move its children into a new group."""
    with open(group.parent / PROCESSES, "ab"):
        pass


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


def own_groups(*controllers: str) -> Iterator[Path]:
    """Yield the directories of the groups that this process is in, in the hierarchies of these
    controllers; of none: those that limit nothing, and that of version 2, which a process enters
    more slowly.
    """
    return filter(None, map(_own_group, controllers or (*_VERSION_1, "")))


def _own_group(controller: str) -> Path | None:
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
