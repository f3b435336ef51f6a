"""The file that a token is kept in."""

from __future__ import annotations

import os
from stat import S_IMODE, S_ISREG

from fairbank.core.errors import Forbidden, InvalidInput, NotFound


def read_token(path: str) -> str:
    """The token kept in a file that nobody else can read. Raises NotFound, Forbidden, InvalidInput; never repeats the token."""
    try:
        file = os.open(os.path.expanduser(path), os.O_RDONLY | os.O_NONBLOCK)  # noqa: PTH111
    except OSError as error:
        raise NotFound(
            f"cannot read the token in {path}: {error.strerror}",
            field="token_file",
            remedy="name a readable file",
        ) from error
    try:
        kept = os.fstat(file)
        text = os.read(file, 1_024) if S_ISREG(kept.st_mode) else b""
    finally:
        os.close(file)
    if (
        not S_ISREG(kept.st_mode)
        or S_IMODE(kept.st_mode) & 0o077
        or kept.st_uid not in (0, os.geteuid())
    ):
        raise Forbidden(
            f"others can read the token in {path}", field="token_file", remedy=f"chmod 600 {path}"
        )
    token = text.strip().decode("latin-1")
    if not (token.isascii() and token.isprintable() and token) or " " in token:
        raise InvalidInput(
            f"{path} holds no token",
            field="token_file",
            remedy="one line, as `fairbank token create` printed it",
        )
    return token
