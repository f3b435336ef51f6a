"""Control groups that limit the memory of runs, in version 2 or the hierarchy `memory` of 1.

A run has a group with its limit, and each of its steps one below it, which counts the processes
that the kernel has killed there.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from fairbank.core.os_errors import translate_os_error
from fairbank.wlm.node.control_group import group_prefix, own_group, remove_group

SCRIPT_GROUP = "batch"
"""Name of the group of a batch script."""
_TRIAL_BYTES = 16 << 20
_TRIAL = f"""
import sys
open(sys.argv[1] + "/cgroup.procs", "w").write("0")
bytearray({4 * _TRIAL_BYTES})
"""
"""Program that enters a group, and uses more memory than it may."""
_SUBTREE = "cgroup.subtree_control"
_LIMIT, _SWAP = "memory.max", "memory.swap.max"
_LIMIT_1, _WITH_SWAP_1 = "memory.limit_in_bytes", "memory.memsw.limit_in_bytes"


class MemoryGroups:
    """Groups of the runs on one node, below that of the node daemon. Without a parent there are
    none.
    """

    def __init__(self, spool: Path, parents: Iterable[Path]) -> None:
        """Find the first parent that can be used.

        Args:
            spool: spool directory of the node.
            parents: directories of groups.
        """
        self._prefix = group_prefix(spool)
        self._parent = next(filter(self._is_usable, parents), None)

    @property
    def version(self) -> int:
        """Version of the groups; 0: there are none."""
        if self._parent is None:
            return 0
        return 2 if _is_unified(self._parent) else 1

    def _is_usable(self, parent: Path) -> bool:
        """Return True if this process can limit groups there."""
        trial = parent / f"{self._prefix}.trial"
        try:
            if _is_unified(parent) and "memory" not in (parent / _SUBTREE).read_text().split():
                # The kernel refuses it if the group has processes of its own.
                (parent / _SUBTREE).write_text("+memory")
            trial.mkdir(exist_ok=True)
            _set_limit(trial, 1 << 30, is_unified=_is_unified(parent))
        except OSError:
            return False
        else:
            return True
        finally:
            remove_group(str(trial))

    def create(self, name: str, limit: int) -> str:
        """Return the directory of the group of a run; empty if there are none.

        Args:
            name: name of the run.
            limit: bytes.

        Raises:
            FairbankError: the group cannot be made.
        """
        if self._parent is None:
            return ""
        path = self._parent / f"{self._prefix}.{name}"
        try:
            path.mkdir(exist_ok=True)
            _set_limit(path, limit, is_unified=self.version == 2)
            if self.version == 2:
                (path / _SUBTREE).write_text("+memory")
        except OSError as error:
            raise translate_os_error(error, f"cannot limit the memory of {path}") from error
        return str(path)


def host_parents() -> list[Path]:
    """Return the groups of this process in which groups with limits may be possible."""
    return [path for path in map(own_group, ("", "memory")) if path is not None]


def create_step_group(run_group: str, step: str) -> str:
    """Return the directory of the group of a step; empty if its run has none.

    Raises FairbankError.
    """
    if not run_group:
        return ""
    path = Path(run_group) / step
    try:
        path.mkdir(exist_ok=True)
    except OSError as error:
        raise translate_os_error(error, f"cannot create the control group {path}") from error
    return str(path)


def is_limit_kept(groups: MemoryGroups) -> bool:
    """Try a process above its limit. Return True if the kernel kills it. Raises FairbankError."""
    group = groups.create("doctor", _TRIAL_BYTES)
    try:
        command = [sys.executable, "-I", "-c", _TRIAL, create_step_group(group, SCRIPT_GROUP)]
        return subprocess.run(command, check=False).returncode == -signal.SIGKILL
    finally:
        remove_run_group(group)


def remove_run_group(run_group: str) -> None:
    """Remove the group of a run and those of its steps, as far as they have no processes."""
    with suppress(OSError):
        for path in Path(run_group).iterdir() if run_group else ():
            if path.is_dir():
                remove_group(str(path))
    if run_group:
        remove_group(run_group)


def _is_unified(group: Path) -> bool:
    return (group / "cgroup.controllers").exists()


def _set_limit(group: Path, limit: int, *, is_unified: bool) -> None:
    """Set the limit of a group in bytes. What is swapped out counts, where the kernel counts it."""
    if is_unified:
        (group / _LIMIT).write_text(f"{limit}")
        if (group / _SWAP).exists():
            (group / _SWAP).write_text("0")
        return
    with suppress(OSError):  # always so in newer kernels
        (group / "memory.use_hierarchy").write_text("1")
    (group / _LIMIT_1).write_text(f"{limit}")
    if (group / _WITH_SWAP_1).exists():
        (group / _WITH_SWAP_1).write_text(f"{limit}")
