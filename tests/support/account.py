"""Under which user a server of the tests runs. PostgreSQL and munged both want another one than
root.
"""

from __future__ import annotations

import os
import pwd
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Account:
    """A user and a group, by number."""

    uid: int
    gid: int

    @classmethod
    def ourselves(cls) -> Account:
        return cls(os.geteuid(), os.getegid())

    @classmethod
    def nobody(cls) -> Account:
        """An unprivileged user with a name (initdb asks for one) when we are root; ourselves when
        we are not.
        """
        if os.geteuid() != 0:
            return cls.ourselves()
        entry = pwd.getpwnam("nobody")
        return cls(entry.pw_uid, entry.pw_gid)

    @classmethod
    def number(cls, uid: int) -> Account:
        """A user that need not exist, when we are root; ourselves when we are not."""
        return cls(uid, uid) if os.geteuid() == 0 else cls.ourselves()

    @property
    def is_ourselves(self) -> bool:
        return self == Account.ourselves()

    @property
    def groups(self) -> list[int] | None:
        """No further groups. Only root can say so, and needs to."""
        return [] if os.geteuid() == 0 else None

    def own_folder(self, prefix: str, mode: int = 0o700) -> Path:
        """A new folder of this user with a path short enough for a Unix socket (108 bytes, whatever
        TMPDIR says).
        """
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir="/tmp"))
        folder.chmod(mode)
        self.give(folder)
        return folder

    def give(self, path: Path) -> None:
        if not self.is_ourselves:
            os.chown(path, self.uid, self.gid)

    def within_reach(self, folder: Path, spare: Path) -> Path:
        """The folder, or a copy under `spare` when this user cannot get there: a checkout in /root,
        say.
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
