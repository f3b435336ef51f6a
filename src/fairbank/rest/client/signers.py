"""How a client proves who asks."""

from __future__ import annotations

from fairbank.core.errors import Unreachable


class Signer:
    """Says nothing: on the Unix socket the kernel tells the bank who is there."""

    def authorization(
        self, method: str, target: str, body: bytes, acting_as: str | None, key: str | None
    ) -> str | None:
        """The `Authorization` header for one request, if it needs one."""
        return None


class TokenSigner(Signer):
    """Signs in with an opaque token."""

    def __init__(self, token: str) -> None:
        self._token = token

    def authorization(
        self, method: str, target: str, body: bytes, acting_as: str | None, key: str | None
    ) -> str:
        return f"Bearer {self._token}"


class MungeSigner(Signer):
    """Signs each request with MUNGE for the bank named `audience`; by the usual munged and libmunge, or by those named."""

    def __init__(
        self, audience: str, *, socket: str | None = None, library: str | None = None
    ) -> None:
        self._audience, self._socket, self._library = audience, socket, library

    def authorization(
        self, method: str, target: str, body: bytes, acting_as: str | None, key: str | None
    ) -> str:
        from fairbank.rest.auth.credentials import BoundRequest, sign  # noqa: PLC0415  only who signs with MUNGE pays for ctypes and hashlib
        from fairbank.rest.auth.munge import LIBRARY, Munge  # noqa: PLC0415

        munge = Munge(socket=self._socket, library=self._library or LIBRARY)
        try:
            return sign(
                munge,
                BoundRequest.of(method, target, body, self._audience, acting_as=acting_as, key=key),
            )
        except Unreachable as silent:
            raise Unreachable(
                f"over the network you sign in with MUNGE unless you name a token, and {silent.message}",
                field="token_file",
                remedy=f"name the file with your token (FAIRBANK_TOKEN_FILE; fairbank token create makes one), or {silent.remedy}",
            ) from silent
