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
from fairbank.wlm.node.control_group import ControlGroups, SetGroup, own_groups, remove_group

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


def memory_groups(spool: Path, parents: Iterable[Path]) -> ControlGroups:
    """Return the groups below the first of some parents in which memory can be limited.

    Args:
        spool: spool directory of the node.
        parents: directories of groups, such as `host_parents` returns.
    """
    return ControlGroups(spool, parents, _try_limit)


def host_parents() -> Iterable[Path]:
    """Return the groups of this process in which groups with limits may be possible."""
    return own_groups("", "memory")


def memory_version(groups: ControlGroups) -> int:
    """Return the version of the groups that limit memory; 0: there are none."""
    if groups.parent is None:
        return 0
    return 2 if _is_unified(groups.parent) else 1


def _try_limit(group: Path) -> None:
    subtree = group.parent / _SUBTREE
    if _is_unified(group.parent) and "memory" not in subtree.read_text().split():
        subtree.write_text("+memory")  # the kernel refuses it if the parent has processes
    _set_limit(group, 1 << 30)


def limit_of(size: int) -> SetGroup:
    """Return the setting of a group of a run that may have so many bytes."""

    def limit(group: Path) -> None:
        _set_limit(group, size)
        if _is_unified(group.parent):
            (group / _SUBTREE).write_text("+memory")

    return limit


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


def is_limit_kept(groups: ControlGroups) -> bool:
    """Try a process above its limit. Return True if the kernel kills it. Raises FairbankError."""
    group = groups.create("doctor", limit_of(_TRIAL_BYTES))
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


def _set_limit(group: Path, limit: int) -> None:
    """Set the limit of a group in bytes. What is swapped out counts, where the kernel counts it."""
    if _is_unified(group.parent):
        (group / _LIMIT).write_text(f"{limit}")
        if (group / _SWAP).exists():
            (group / _SWAP).write_text("0")
        return
    with suppress(OSError):  # always so in newer kernels
        (group / "memory.use_hierarchy").write_text("1")
    (group / _LIMIT_1).write_text(f"{limit}")
    if (group / _WITH_SWAP_1).exists():
        (group / _WITH_SWAP_1).write_text(f"{limit}")
