"""MUNGE through libmunge: who made a credential, when, and what it carries. `credentials` binds one to a request.

Light enough for the everyday command: the library is loaded when the first credential is made or read.
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
CREDENTIAL_MAX = 16_384  # what we let near the decoder; it travels in a header
PAYLOAD_MAX = 12_000  # such a payload makes a credential just below CREDENTIAL_MAX

SIGN_ANEW = "make a new credential for each request"
SAME_TIME = "keep the clocks of both hosts right (chrony or ntpd), then make a new credential"

_HEAD, _TAIL = b"MUNGE:", b":"


class Decoded(NamedTuple):
    """What munged vouches for: this user, on a host with our key, sealed this payload at that time."""

    payload: bytes
    uid: int
    gid: int
    encoded_at: Instant
    ttl_seconds: int


class Munge:
    """One munged, spoken to through libmunge.

    Safe in many threads; each call is a conversation of its own. A munged that hangs holds a call for some seconds,
    so a server calls from a worker thread.
    """

    def __init__(
        self,
        *,
        socket: str | None = None,
        library: str = LIBRARY,
        ttl_seconds: int | None = None,
        only_uid: int | None = None,
    ) -> None:
        """Speak to the munged at `socket`, or to the one that libmunge was built for.

        What is encoded lives `ttl_seconds` (munged's own default and ceiling apply) and can be decoded by everybody, or by `only_uid`.
        """
        self._socket = socket
        self._library = library
        self._ttl_seconds = ttl_seconds
        self._only_uid = only_uid

    def encode(self, payload: bytes) -> bytes:
        """Seal a payload in the name of the calling process. Raises InvalidInput, Unavailable."""
        if len(payload) > PAYLOAD_MAX:
            raise InvalidInput(
                f"{len(payload)} bytes are too much for a credential",
                remedy=f"at most {PAYLOAD_MAX} bytes",
            )
        lib = _load(self._library)
        with self._context(lib) as context:
            if self._ttl_seconds is not None:
                _set(lib, context, _TTL, ctypes.c_int(self._ttl_seconds))
            if self._only_uid is not None:
                _set(lib, context, _ONLY_UID, ctypes.c_uint32(self._only_uid))
            sealed = ctypes.c_void_p()
            error = lib.munge_encode(ctypes.byref(sealed), context, payload, len(payload))
            if error:
                raise _cannot_encode(error, _detail(lib, context, error))
            return _take(lib, sealed)

    def decode(self, credential: bytes) -> Decoded:
        """Open a credential, once: munged refuses to open it again. Raises Unauthenticated, Unavailable."""
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
            opened = _take(
                lib, payload, length.value
            )  # munged hands out the payload of an expired or replayed one too
            made, now, ttl = (
                _get(lib, context, option) for option in (_ENCODED_AT, _DECODED_AT, _TTL)
            )
            if error:
                raise _cannot_decode(error, _detail(lib, context, error), made, now, ttl)
            return Decoded(opened, uid.value, gid.value, Instant(made), ttl)

    @contextmanager
    def _context(self, lib: ctypes.CDLL) -> Iterator[ctypes.c_void_p]:
        """A fresh context a call: libmunge's are not for two threads, and decoding leaves its settings behind."""
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
    """Length before anything else, then the one spelling: base64 has several for the same bytes, munged takes them all."""
    if len(credential) > CREDENTIAL_MAX:
        raise Unauthenticated(
            f"a MUNGE credential of {len(credential)} bytes is refused",
            remedy=f"at most {CREDENTIAL_MAX} bytes",
        )
    sealed = credential[len(_HEAD) : -len(_TAIL)]
    try:
        whole = (
            credential
            == _HEAD
            + binascii.b2a_base64(binascii.a2b_base64(sealed, strict_mode=True), newline=False)
            + _TAIL
        )
    except binascii.Error:
        whole = False
    if not whole:
        raise Unauthenticated(
            "this is not a MUNGE credential, or a damaged one",
            remedy="send it whole, as munge prints it, on one line",
        )


# Options and errors of munge.h; they have not moved since MUNGE 0.5.

_TTL, _ENCODED_AT, _DECODED_AT, _SOCKET, _ONLY_UID = 4, 6, 7, 8, 9

_BAD_LENGTH, _NO_SOCKET, _TIMED_OUT = 3, 6, 7
_INVALID = frozenset(range(8, 15))  # version, cipher, MAC, zip, realm, or not decipherable
_EXPIRED, _REWOUND, _REPLAYED, _NOT_FOR_US = 15, 16, 17, 18


def _cannot_encode(error: int, detail: str) -> FairbankError:
    if error == _BAD_LENGTH:
        return InvalidInput(
            f"MUNGE will not seal this: {detail}", remedy=f"at most {PAYLOAD_MAX} bytes"
        )
    return _unreachable(error, detail)


def _cannot_decode(error: int, detail: str, made: int, now: int, ttl: int) -> FairbankError:
    if error == _EXPIRED:
        return Unauthenticated(
            f"the credential has expired: made at {iso(made)}, {now - made} s ago, good for {ttl} s",
            remedy=SIGN_ANEW,
        )
    if error == _REWOUND:
        return Unauthenticated(
            f"clock skew: the credential was made {made - now} s in the future of this host",
            remedy=SAME_TIME,
        )
    if error == _REPLAYED:
        return Unauthenticated("this credential was used before", remedy=SIGN_ANEW)
    if error == _NOT_FOR_US:
        return Unauthenticated(
            "the credential is for another user to read",
            remedy="restrict it to the bank's own user, or to nobody",
        )
    if error in _INVALID:
        return Unauthenticated(
            f"MUNGE does not accept the credential: {detail}",
            remedy="send it unaltered; both hosts need the same munge.key",
        )
    return _unreachable(error, detail)


def _unreachable(error: int, detail: str) -> FairbankError:
    silent = "munged does not answer" if error in (_NO_SOCKET, _TIMED_OUT) else "munged failed"
    return Unavailable(
        f"{silent}: {detail}",
        remedy="start munged on this host (systemctl start munge) and try again",
    )


# The few calls of libmunge, and the memory that it hands over.


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
        lib.free.argtypes = [
            ctypes.c_void_p
        ]  # the C library's, found through libmunge, so surely the one that allocated
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
            f"MUNGE does not take this: {detail}",
            field="munge_socket",
            remedy="look at server.munge_socket in the settings",
        )


def _get(lib: ctypes.CDLL, context: ctypes.c_void_p, option: int) -> int:
    value = (
        ctypes.c_int() if option == _TTL else ctypes.c_long()
    )  # time_t is a long wherever Slurm runs
    lib.munge_ctx_get(context, option, ctypes.byref(value))
    return value.value


def _detail(lib: ctypes.CDLL, context: ctypes.c_void_p, error: int) -> str:
    text: bytes = lib.munge_ctx_strerror(context) or lib.munge_strerror(error)
    return text.decode("utf-8", "replace")


def _take(lib: ctypes.CDLL, memory: ctypes.c_void_p, length: int = -1) -> bytes:
    """Copy what libmunge allocated, up to NUL or `length` bytes, and give it back to the C library."""
    if memory.value is None:
        return b""
    try:
        return ctypes.string_at(memory.value, length)
    finally:
        lib.free(memory)
