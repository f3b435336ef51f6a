"""File with the key of the token digests, which only its owner can read."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from stat import S_ISREG
from typing import TYPE_CHECKING

from fairbank.core.errors import Corrupt, Forbidden, NotFound
from fairbank.core.os_errors import is_full, translate_os_error

if TYPE_CHECKING:
    from pathlib import Path  # only for types: this module is imported by commands

_KEY_BYTES = 32
_CREATE_AGAIN = (
    "create a new one with: fairbank init DIRECTORY, that of fairbank.toml; older tokens are"
    " not valid any more"
)


def read_secret(path: Path, *, create: bool = False) -> bytes:
    """Return the key in a file.

    Args:
        path: the file.
        create: create the file with a new key if it is missing.

    Raises:
        NotFound: the file is missing.
        Forbidden: other users can read or replace it.
        Corrupt: it does not contain a key.
    """
    try:
        if create and not path.exists():
            make_private(path, os.urandom(_KEY_BYTES).hex() + "\n")
        return _read_private(path)
    except FileNotFoundError as missing:
        raise NotFound(
            f"the secret is missing: there is no file {path}",
            field="secret_file",
            remedy=f"copy it back, or {_CREATE_AGAIN}",
        ) from missing
    except OSError as bad:
        if is_full(bad):
            raise translate_os_error(bad, f"cannot create {path}", field="secret_file") from bad
        raise Forbidden(
            f"the key in {path} cannot be used: {bad.strerror}",
            field="secret_file",
            remedy="replace it by a regular file of the bank's user",
        ) from bad


def _read_private(path: Path) -> bytes:
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        status, text = os.fstat(file), os.read(file, 2 * _KEY_BYTES + 2)
    finally:
        os.close(file)
    if (
        not S_ISREG(status.st_mode)
        or status.st_uid not in (0, os.geteuid())
        or status.st_mode & 0o077
    ):
        raise Forbidden(
            f"others can read or change the key in {path}",
            field="secret_file",
            remedy=f"chown it to the bank's user; chmod 600 {path}",
        )
    if not re.fullmatch(rb"[0-9a-f]{%d}\n?" % (2 * _KEY_BYTES), text):
        raise Corrupt(
            f"{path} does not contain a key",
            field="secret_file",
            remedy=(
                f"copy it back (one line of {2 * _KEY_BYTES} hexadecimal digits; a backup of the"
                f" bank does not hold it), or delete it and {_CREATE_AGAIN}"
            ),
        )
    return bytes.fromhex(text.decode("ascii"))


def make_private(path: Path, text: str) -> None:
    """Create a file that only its owner can read; raise OSError if that fails.

    It is written under another name and then linked. So a process that reads it, even after a
    crash, finds no file or a complete one, and of two concurrent writers one wins.
    """
    temporary = path.with_name(f".{path.name}.{os.urandom(8).hex()}")
    try:
        with os.fdopen(
            os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
        ) as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
