"""User of a test server. PostgreSQL and munged require a user other than root."""

from __future__ import annotations

import os
import pwd
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Account:
    """User and group, by number."""

    uid: int
    gid: int

    @classmethod
    def ourselves(cls) -> Account:
        return cls(os.geteuid(), os.getegid())

    @classmethod
    def nobody(cls) -> Account:
        """Return an unprivileged user with a name (initdb requires one) if we are root; otherwise
        ourselves.
        """
        if os.geteuid() != 0:
            return cls.ourselves()
        entry = pwd.getpwnam("nobody")
        return cls(entry.pw_uid, entry.pw_gid)

    @classmethod
    def number(cls, uid: int) -> Account:
        """Return a user that need not exist if we are root; otherwise ourselves."""
        return cls(uid, uid) if os.geteuid() == 0 else cls.ourselves()

    @property
    def is_ourselves(self) -> bool:
        return self == Account.ourselves()

    @property
    def groups(self) -> list[int] | None:
        """Return no supplementary groups. Only root can and must set them."""
        return [] if os.geteuid() == 0 else None

    def own_folder(self, prefix: str, mode: int = 0o700) -> Path:
        """Return a new directory of this user with a path short enough for a Unix socket (108
        bytes, for any TMPDIR).
        """
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir="/tmp"))
        folder.chmod(mode)
        self.give(folder)
        return folder

    def give(self, path: Path) -> None:
        if not self.is_ourselves:
            os.chown(path, self.uid, self.gid)

    def within_reach(self, folder: Path, spare: Path) -> Path:
        """Return the directory, or a copy below `spare` if this user cannot reach it, as for a
        checkout in /root.
        """
        if self.is_ourselves or all(
            parent.stat().st_mode & 0o001 for parent in [folder, *folder.parents]
        ):
            return folder
        copy = spare / folder.name
        if not copy.exists():
            shutil.copytree(folder, copy, symlinks=True)
            copy.chmod(0o755)
        return copy
