"""Creation and decoding of MUNGE credentials through libmunge.

The library is loaded on first use, so that commands which do not need it start fast.
"""

from __future__ import annotations

import binascii
import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import NamedTuple

from fairbank.core.errors import FairbankError, InvalidInput, Unauthenticated, Unavailable
from fairbank.core.time import Instant, iso

LIBRARY = "libmunge.so.2"
CREDENTIAL_MAX = 16_384  # bytes; a credential travels in a header
PAYLOAD_MAX = 12_000  # bytes; its credential is just below CREDENTIAL_MAX

NEW_CREDENTIAL = "create a new credential for each request"
SYNCHRONISE = "synchronise the clocks of both hosts (chrony or ntpd), then create a new credential"

_HEAD, _TAIL = b"MUNGE:", b":"


class Decoded(NamedTuple):
    """Content of a credential, as munged certifies it: user, payload and time of encoding.

    `nonce` is set for a credential that is bound to no request.
    """

    payload: bytes
    uid: int
    gid: int
    encoded_at: Instant
    ttl_seconds: int
    nonce: str | None = None


class Munge:
    """Client of one munged, through libmunge. It is thread-safe.

    A munged that hangs blocks a call for some seconds, so a server calls it in a worker thread.
    """

    def __init__(
        self,
        *,
        socket: str | None = None,
        library: str = LIBRARY,
        ttl_seconds: int | None = None,
        only_uid: int | None = None,
    ) -> None:
        """Create a client.

        Args:
            socket: the socket of munged; default: the one that libmunge was built with.
            library: file name of libmunge.
            ttl_seconds: validity of created credentials; default and maximum: those of munged.
            only_uid: user who may decode created credentials; default: all users.
        """
        self._socket = socket
        self._library = library
        self._ttl_seconds = ttl_seconds
        self._only_uid = only_uid

    def encode(self, payload: bytes) -> bytes:
        """Create a credential for the calling process.

        Raises:
            InvalidInput: the payload is too large.
            Unavailable: munged does not answer, or libmunge is missing.
        """
        if len(payload) > PAYLOAD_MAX:
            raise InvalidInput(
                f"{len(payload)} bytes are too many for a credential",
                remedy=f"at most {PAYLOAD_MAX} bytes",
            )
        lib = _load(self._library)
        with self._context(lib) as context:
            if self._ttl_seconds is not None:
                _set(lib, context, _TTL, ctypes.c_int(self._ttl_seconds))
            if self._only_uid is not None:
                _set(lib, context, _ONLY_UID, ctypes.c_uint32(self._only_uid))
            credential = ctypes.c_void_p()
            error = lib.munge_encode(ctypes.byref(credential), context, payload, len(payload))
            if error:
                raise _encoding_error(error, _detail(lib, context, error))
            return _take(lib, credential)

    def decode(self, credential: bytes) -> Decoded:
        """Decode a credential. munged decodes each one once.

        Raises:
            Unauthenticated: it is invalid, has expired or was decoded before.
            Unavailable: munged does not answer, or libmunge is missing.
        """
        _check_shape(credential)
        lib = _load(self._library)
        with self._context(lib) as context:
            payload, length, uid, gid = (
                ctypes.c_void_p(),
                ctypes.c_int(),
                ctypes.c_uint32(),
                ctypes.c_uint32(),
            )
            error = lib.munge_decode(
                credential,
                context,
                ctypes.byref(payload),
                ctypes.byref(length),
                ctypes.byref(uid),
                ctypes.byref(gid),
            )
            # Before the check of the error: an expired credential has a payload to free, too.
            content = _take(lib, payload, length.value)
            encoded_at, now, ttl = (
                _get(lib, context, option) for option in (_ENCODED_AT, _DECODED_AT, _TTL)
            )
            if error:
                raise decoding_error(error, _detail(lib, context, error), encoded_at, now, ttl)
            return Decoded(content, uid.value, gid.value, Instant(encoded_at), ttl)

    @contextmanager
    def _context(self, lib: ctypes.CDLL) -> Iterator[ctypes.c_void_p]:
        """Create a context for one call. They are not thread-safe, and decoding changes them."""
        context = ctypes.c_void_p(lib.munge_ctx_create())
        if not context.value:
            raise Unavailable("libmunge has no memory left", remedy="free memory on this host")
        try:
            if self._socket is not None:
                _set(lib, context, _SOCKET, ctypes.c_char_p(os.fsencode(self._socket)))
            yield context
        finally:
            lib.munge_ctx_destroy(context)


def _check_shape(credential: bytes) -> None:
    """Check the length, then the form: munged accepts several base64 texts for the same bytes."""
    if len(credential) > CREDENTIAL_MAX:
        raise Unauthenticated(
            f"a MUNGE credential of {len(credential)} bytes is refused",
            remedy=f"at most {CREDENTIAL_MAX} bytes",
        )
    text = credential[len(_HEAD) : -len(_TAIL)]
    try:
        content = binascii.a2b_base64(text, strict_mode=True)
        canonical = _HEAD + binascii.b2a_base64(content, newline=False) + _TAIL
    except binascii.Error:
        canonical = b""
    if credential != canonical:
        raise Unauthenticated(
            "this is not a MUNGE credential, or a damaged one",
            remedy="send it complete, as munge prints it, on one line",
        )


# Options and errors of munge.h; unchanged since MUNGE 0.5.

_TTL, _ENCODED_AT, _DECODED_AT, _SOCKET, _ONLY_UID = 4, 6, 7, 8, 9

_BAD_LENGTH, _NO_SOCKET, _TIMED_OUT = 3, 6, 7
_INVALID = frozenset(range(8, 15))  # version, cipher, MAC, zip, realm, or not decipherable
_EXPIRED, _REWOUND, _REPLAYED, _NOT_FOR_US = 15, 16, 17, 18


def _encoding_error(error: int, detail: str) -> FairbankError:
    if error == _BAD_LENGTH:
        return InvalidInput(
            f"MUNGE cannot encode this: {detail}", remedy=f"at most {PAYLOAD_MAX} bytes"
        )
    return _unreachable(error, detail)


def decoding_error(error: int, detail: str, encoded_at: int, now: int, ttl: int) -> FairbankError:
    """Return the error for a credential that munged does not accept, or that it cannot decode now.

    Args:
        error: the error code of libmunge.
        detail: libmunge's message.
        encoded_at: the time at which the credential was made, by the clock of its host.
        now: the time at which it was decoded, by the clock of this host.
        ttl: seconds for which it is valid.
    """
    if error == _EXPIRED:
        return Unauthenticated(
            f"the credential has expired: made at {iso(encoded_at)}, {now - encoded_at} s ago, "
            f"valid for {ttl} s",
            remedy=NEW_CREDENTIAL,
        )
    if error == _REWOUND:
        return Unauthenticated(
            f"clock skew: the credential was made {encoded_at - now} s in the future of this host",
            remedy=SYNCHRONISE,
        )
    if error == _REPLAYED:
        return Unauthenticated("this credential was used before", remedy=NEW_CREDENTIAL)
    if error == _NOT_FOR_US:
        return Unauthenticated(
            "the credential is for another user to read",
            remedy="restrict it to the bank's own user, or do not restrict it",
        )
    if error in _INVALID:
        return Unauthenticated(
            f"MUNGE does not accept the credential: {detail}",
            remedy="send it unchanged; both hosts need the same munge.key",
        )
    return _unreachable(error, detail)


def _unreachable(error: int, detail: str) -> FairbankError:
    problem = "munged does not answer" if error in (_NO_SOCKET, _TIMED_OUT) else "munged failed"
    return Unavailable(
        f"{problem}: {detail}",
        remedy="start munged on this host (systemctl start munge) and try again",
    )


# Calls of libmunge, and the memory that it allocates.


@cache
def _load(library: str) -> ctypes.CDLL:
    try:
        lib = ctypes.CDLL(library)
        lib.munge_ctx_create.restype = ctypes.c_void_p
        lib.munge_strerror.restype = lib.munge_ctx_strerror.restype = ctypes.c_char_p
        lib.munge_encode.argtypes = [
            ctypes.c_void_p,
            ctypes.c_void_p,
            ctypes.c_char_p,
            ctypes.c_int,
        ]
        lib.munge_decode.argtypes = [ctypes.c_char_p, *[ctypes.c_void_p] * 5]
        # free() is found through libmunge, so it belongs to the C library that allocated.
        lib.free.argtypes = [ctypes.c_void_p]
    except (OSError, AttributeError) as bad:
        raise Unavailable(
            f"MUNGE cannot be used here: {bad}", remedy="install libmunge2, or use the Unix socket"
        ) from bad
    return lib


def _set(
    lib: ctypes.CDLL,
    context: ctypes.c_void_p,
    option: int,
    value: ctypes.c_int | ctypes.c_uint32 | ctypes.c_char_p,
) -> None:
    error = lib.munge_ctx_set(context, option, value)
    if error:
        detail = _detail(lib, context, error)
        raise InvalidInput(
            f"MUNGE does not accept this: {detail}",
            field="munge_socket",
            remedy="check server.munge_socket in the settings",
        )


def _get(lib: ctypes.CDLL, context: ctypes.c_void_p, option: int) -> int:
    # time_t is a long wherever Slurm runs.
    value = ctypes.c_int() if option == _TTL else ctypes.c_long()
    lib.munge_ctx_get(context, option, ctypes.byref(value))
    return value.value


def _detail(lib: ctypes.CDLL, context: ctypes.c_void_p, error: int) -> str:
    text: bytes = lib.munge_ctx_strerror(context) or lib.munge_strerror(error)
    return text.decode("utf-8", "replace")


def _take(lib: ctypes.CDLL, memory: ctypes.c_void_p, length: int = -1) -> bytes:
    """Copy memory of libmunge, up to NUL or `length` bytes, and free it."""
    if memory.value is None:
        return b""
    try:
        return ctypes.string_at(memory.value, length)
    finally:
        lib.free(memory)
