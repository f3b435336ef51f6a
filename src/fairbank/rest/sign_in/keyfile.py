"""The file with the key of the tokens' digests: its owner's alone, made whole or not at all."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from stat import S_ISREG
from typing import TYPE_CHECKING

from fairbank.core.errors import Corrupt, Forbidden, NotFound
from fairbank.core.os_errors import is_full, translate_os_error

if TYPE_CHECKING:
    from pathlib import Path  # for its name only: commands on the server's host come through here

_KEY_BYTES = 32


def read_secret(path: Path, *, create: bool = False) -> bytes:
    """The key kept in a file, made there first when `create` allows.

    Raises NotFound without a file, Forbidden when others may read or replace it, Corrupt when it holds no key.
    """
    try:
        if create and not path.exists():
            make_private(path, os.urandom(_KEY_BYTES).hex() + "\n")
        return _read_private(path)
    except FileNotFoundError as missing:
        raise NotFound(
            f"there is no key in {path}", field="secret", remedy="make one with: fairbank init"
        ) from missing
    except OSError as bad:
        if is_full(bad):
            raise translate_os_error(bad, f"cannot make {path}", field="secret") from bad
        raise Forbidden(
            f"the key in {path} cannot be used: {bad.strerror}",
            field="secret",
            remedy="make it a plain file of the bank's user",
        ) from bad


def _read_private(path: Path) -> bytes:
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        kept, text = os.fstat(file), os.read(file, 2 * _KEY_BYTES + 2)
    finally:
        os.close(file)
    if not S_ISREG(kept.st_mode) or kept.st_uid not in (0, os.geteuid()) or kept.st_mode & 0o077:
        raise Forbidden(
            f"others can read or change the key in {path}",
            field="secret",
            remedy=f"chown it to the bank's user; chmod 600 {path}",
        )
    if not re.fullmatch(rb"[0-9a-f]{%d}\n?" % (2 * _KEY_BYTES), text):
        raise Corrupt(
            f"{path} holds no key",
            field="secret",
            remedy=f"one line of {2 * _KEY_BYTES} hexadecimal digits; restore it from a backup",
        )
    return bytes.fromhex(text.decode("ascii"))


def make_private(path: Path, text: str) -> None:
    """Make a file that its owner alone may read: written aside, then linked. Whoever looks, also after a kill, sees none or a whole one,
    and of two makers one wins. Raises OSError."""
    aside = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    try:
        with os.fdopen(
            os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
        ) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(aside, path)
    finally:
        aside.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
