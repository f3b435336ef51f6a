"""Control groups of version 1 that keep the processes of a run off the GPUs of others.

Version 2 would need a BPF program. Without a group, variables alone ask programs to keep off.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from fairbank.core.os_errors import translate_os_error
from fairbank.wlm.node.control_group import group_prefix, own_group

_DENY = "devices.deny"


class DeviceGroups:
    """Groups in the hierarchy `devices`, below that of the node daemon."""

    def __init__(self, spool: Path, *, allowed: bool) -> None:
        """Find out whether this process can keep others off devices.

        Args:
            spool: spool directory of the node.
            allowed: False: no groups are made.
        """
        self._prefix = group_prefix(spool)
        parent = own_group("devices") if allowed else None
        self._parent = parent if parent is not None and self._is_usable(parent) else None

    @property
    def are_controlled(self) -> bool:
        """True if a run cannot open the GPUs of others."""
        return self._parent is not None

    def _is_usable(self, parent: Path) -> bool:
        trial = parent / f"{self._prefix}.trial"
        try:
            trial.mkdir(exist_ok=True)
            # No device has this number: only the right to write is tried.
            (trial / _DENY).write_text("c 511:1048575 rwm")
        except OSError:
            return False
        else:
            return True
        finally:
            with suppress(OSError):
                trial.rmdir()

    def create(self, name: str, hidden: Iterable[str]) -> str:
        """Return the directory of a new group; empty if there are none.

        Args:
            name: name of the run.
            hidden: device files that its processes must not open.

        Raises:
            FairbankError: the group cannot be made.
        """
        if self._parent is None:
            return ""
        path = self._parent / f"{self._prefix}.{name}"
        try:
            path.mkdir(exist_ok=True)
            for file in filter(Path.exists, map(Path, hidden)):
                status = file.stat()
                if stat.S_ISCHR(status.st_mode):
                    device = f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
                    (path / _DENY).write_text(f"c {device} rwm")
        except OSError as error:
            raise translate_os_error(error, f"cannot hide devices in {path}") from error
        return str(path)
