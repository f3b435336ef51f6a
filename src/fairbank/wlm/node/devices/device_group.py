"""Control groups of version 1 that keep the processes of a run off the GPUs of others.

Version 2 would need a BPF program. Without a group, variables alone ask programs to keep off.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from fairbank.wlm.node.control_group import ControlGroups, SetGroup, own_groups

_DENY = "devices.deny"


def device_groups(spool: Path, *, allowed: bool) -> ControlGroups:
    """Return the groups in the hierarchy `devices`; none if this process cannot keep others off.

    Args:
        spool: spool directory of the node.
        allowed: False: no groups are made.
    """
    return ControlGroups(spool, own_groups("devices") if allowed else (), _try_denial)


def _try_denial(group: Path) -> None:
    # No device has this number: only the right to write is tried.
    (group / _DENY).write_text("c 511:1048575 rwm")


def denial(hidden: Iterable[str]) -> SetGroup:
    """Return the setting of a group whose processes must not open these device files."""

    def deny(group: Path) -> None:
        for file in filter(Path.exists, map(Path, hidden)):
            status = file.stat()
            if stat.S_ISCHR(status.st_mode):
                device = f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
                (group / _DENY).write_text(f"c {device} rwm")

    return deny
