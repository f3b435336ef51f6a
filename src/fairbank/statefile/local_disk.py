"""Local disks: a state file must not be on a network file system, where locks may not hold."""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePath

from fairbank.core.errors import InvalidInput

NETWORK = frozenset(
    "afs beegfs ceph cifs fuse.glusterfs fuse.sshfs glusterfs gpfs lustre nfs nfs4 orangefs smb3 "
    "smbfs".split()
)
_ESCAPE = re.compile(r"\\([0-7]{3})")


def check_local_disk(directory: Path, *, field: str) -> None:
    """Check that a directory, which may not exist yet, is on a local disk.

    Args:
        directory: directory of a state file.
        field: the setting that named it.

    Raises:
        InvalidInput: it is on a network file system.
    """
    mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape")
    kind = file_system(Path(os.path.realpath(directory)), mounts)
    if kind in NETWORK:
        raise InvalidInput(
            f"{directory} is on a network file system ({kind}), where file locks may not hold",
            field=field,
            remedy=f"name a directory on a local disk, such as /var/tmp/fairbank-{os.getuid()}",
        )


def file_system(path: PurePath, mounts: str) -> str:
    """Return the type of the file system of a path; empty if it is not known.

    Args:
        path: absolute path without links.
        mounts: content of /proc/self/mountinfo.
    """
    kinds: dict[PurePath, str] = {}
    for line in mounts.splitlines():
        fields, _, system = line.partition(" - ")
        # A later line covers an earlier one with the same directory.
        kinds[PurePath(_unescape(fields.split(" ")[4]))] = system.split(" ")[0]
    return next((kinds[place] for place in (path, *path.parents) if place in kinds), "")


def _unescape(text: str) -> str:
    r"""Return a path of mountinfo, which has `\040` for a blank."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 8)), text)
