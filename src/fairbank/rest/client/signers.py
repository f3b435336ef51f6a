"""Authentication of a client: by the Unix socket, a token or MUNGE; and the file of a token."""

from __future__ import annotations

import os
from stat import S_IMODE, S_ISREG

from fairbank.core.errors import Forbidden, InvalidInput, NotFound, Unavailable


class Signer:
    """No header: on the Unix socket the kernel identifies the user."""

    def authorization(
        self, method: str, target: str, body: bytes, acting_as: str | None, key: str | None
    ) -> str | None:
        """Return the `Authorization` header of a request, if it needs one.

        Args:
            method: GET, POST, ...
            target: path and query as sent.
            acting_as: the header X-Fairbank-As.
            key: the header Idempotency-Key.
        """
        return None


class TokenSigner(Signer):
    """A token in each request."""

    def __init__(self, token: str) -> None:
        self._token = token

    def authorization(
        self, method: str, target: str, body: bytes, acting_as: str | None, key: str | None
    ) -> str:
        return f"Bearer {self._token}"


class MungeSigner(Signer):
    """A MUNGE credential for each request, bound to the bank named `audience`."""

    def __init__(
        self, audience: str, *, socket: str | None = None, library: str | None = None
    ) -> None:
        self._audience, self._socket, self._library = audience, socket, library

    def authorization(
        self, method: str, target: str, body: bytes, acting_as: str | None, key: str | None
    ) -> str:
        """Return the Authorization header of a request, signed by munged."""
        # Only users of MUNGE load ctypes and hashlib.
        from fairbank.rest.auth.credentials import BoundRequest, sign  # noqa: PLC0415
        from fairbank.rest.auth.munge import LIBRARY, Munge  # noqa: PLC0415

        munge = Munge(socket=self._socket, library=self._library or LIBRARY)
        request = BoundRequest.of(
            method, target, body, self._audience, acting_as=acting_as, key=key
        )
        try:
            return sign(munge, request)
        except Unavailable as silent:
            raise Unavailable(
                "requests over the network are signed with MUNGE unless a token is given, and "
                f"{silent.message}",
                field="token_file",
                remedy=(
                    "name the file with your token (FAIRBANK_TOKEN_FILE; fairbank token create "
                    f"makes one), or {silent.remedy}"
                ),
            ) from silent


def read_token(path: str) -> str:
    """Return the token in a file. No message repeats the token.

    Raises:
        NotFound: the file cannot be read.
        Forbidden: other users can read it.
        InvalidInput: it does not contain a token.
    """
    try:
        file = os.open(os.path.expanduser(path), os.O_RDONLY | os.O_NONBLOCK)  # noqa: PTH111
    except OSError as error:
        raise NotFound(
            f"cannot read the token in {path}: {error.strerror}",
            field="token_file",
            remedy="name a readable file",
        ) from error
    try:
        status = os.fstat(file)
        text = os.read(file, 1_024) if S_ISREG(status.st_mode) else b""  # a pipe would block
    finally:
        os.close(file)
    if not S_ISREG(status.st_mode):
        raise InvalidInput(
            f"{path} is not a regular file",
            field="token_file",
            remedy="name the file that `fairbank token create` wrote",
        )
    if S_IMODE(status.st_mode) & 0o077 or status.st_uid not in (0, os.geteuid()):
        raise Forbidden(
            f"others can read the token in {path}", field="token_file", remedy=f"chmod 600 {path}"
        )
    token = text.strip().decode("latin-1")
    if not (token.isascii() and token.isprintable() and token) or " " in token:
        raise InvalidInput(
            f"{path} does not contain a token",
            field="token_file",
            remedy="one line, as `fairbank token create` printed it",
        )
    return token
