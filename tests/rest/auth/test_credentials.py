"""MUNGE credentials: each is valid for one request and for a limited time."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.core.errors import Unauthenticated
from fairbank.core.time import Clock, Instant
from fairbank.rest.auth.credentials import (
    BoundRequest,
    MungeVerifier,
    check,
    new_nonce,
    read_munge,
    sign,
    statement,
)
from fairbank.rest.auth.munge import Decoded
from tests.rest.auth.munge_server import ASKED, BANK, NONCE, SqliteNonces, SystemClock, munge_of
from tests.support.clock import ManualClock
from tests.support.munge import Munged
from tests.support.nonces import MemoryNonces

NOW = Instant(1_795_000_000)


# --- check of the credential ---


def decoded_credential(
    bound: BoundRequest = ASKED, *, at: int = NOW, payload: bytes | None = None
) -> Decoded:
    return Decoded(
        statement(bound, NONCE) if payload is None else payload, 1000, 1000, Instant(at), 300
    )


def test_matching_request_returns_the_nonce() -> None:
    assert check(decoded_credential(), ASKED, NOW) == NONCE


@pytest.mark.parametrize(
    ("differs", "bound"),
    [
        ("method", ASKED._replace(method="PUT")),
        ("path or query", ASKED._replace(target="/job/1")),
        ("path or query", ASKED._replace(target="/job")),
        ("path or query", ASKED._replace(target="/job?page=20")),
        ("body hash", BoundRequest.of("POST", "/job?page=2", b'{"amount": 61}', BANK)),
        ("server name", ASKED._replace(audience="other.example.org")),
        ("user acted as", ASKED._replace(acting_as="root")),
        ("idempotency key", ASKED._replace(key="another")),
    ],
)
def test_credential_for_another_request_is_refused_by_the_difference(
    differs: str, bound: BoundRequest
) -> None:
    with pytest.raises(Unauthenticated, match=f"the {differs} differs"):
        check(decoded_credential(bound), ASKED, NOW)


@pytest.mark.parametrize(
    "payload",
    [
        b"x",
        b"\n" * 5,
        b"fairbank request 2" + statement(ASKED, NONCE)[18:],
        statement(ASKED, NONCE) + b"\n",
    ],
)
def test_credential_for_another_service_is_refused(payload: bytes) -> None:
    with pytest.raises(Unauthenticated, match="not made for Fairbank"):
        check(decoded_credential(payload=payload), ASKED, NOW)


@given(
    st.binary()
    | st.binary().map(lambda more: statement(ASKED, NONCE) + more)
    | st.binary(max_size=40).map(lambda b: b + b"\n" + NONCE.encode())
)
def test_any_other_payload_is_refused(payload: bytes) -> None:
    if payload == statement(ASKED, NONCE):
        return
    with pytest.raises(Unauthenticated):
        check(decoded_credential(payload=payload), ASKED, NOW)


@pytest.mark.parametrize(
    ("age", "reason"),
    [
        (300, None),
        (301, "has expired: it is 301 s old"),
        (-60, None),
        (-61, "clock skew"),
        (-(10**9), "clock skew"),
    ],
)
def test_credential_is_valid_from_skew_to_ttl(age: int, reason: str | None) -> None:
    credential = decoded_credential(at=NOW - age)
    if reason is None:
        assert check(credential, ASKED, NOW) == NONCE
    else:
        with pytest.raises(Unauthenticated, match=reason):
            check(credential, ASKED, NOW)


def test_nonces_are_unique() -> None:
    assert len({new_nonce() for _ in range(1_000)}) == 1_000


# --- nonces ---


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_nonce_is_spent_once_by_concurrent_requests(kind: str, tmp_path: Path) -> None:
    nonces = MemoryNonces() if kind == "memory" else SqliteNonces(str(tmp_path / "nonces"))
    with ThreadPoolExecutor(8) as threads:
        assert sum(threads.map(lambda _: nonces.spend(NONCE, 1000, NOW), range(40))) == 1
    assert nonces.spend(NONCE, 1001, NOW), "nonces of another user are separate"


def test_expired_nonces_are_deleted() -> None:
    nonces = MemoryNonces()
    nonces.spend("early", 1000, Instant(10))
    nonces.spend("late", 1000, Instant(20))
    nonces.forget(Instant(10))
    assert nonces.spend("early", 1000, Instant(10))
    assert not nonces.spend("late", 1000, Instant(20))


# --- verifier, with a real munged ---


def verifier(munged: Munged, clock: Clock | None = None) -> MungeVerifier:
    return MungeVerifier(munge_of(munged), MemoryNonces(), clock or SystemClock())


def test_damaged_credential_is_refused_and_spends_no_nonce(munged: Munged) -> None:
    bank, credential = verifier(munged), read_munge(sign(munge_of(munged), ASKED))
    for place in range(0, len(credential), 10):
        altered = bytearray(credential)
        altered[place] ^= 0x01
        for wrong in (bytes(altered), credential[:place]):
            with pytest.raises(Unauthenticated):
                bank.verify(wrong, ASKED)
    assert bank.verify(credential, ASKED).uid == os.geteuid()


def test_age_is_measured_by_the_server_clock(munged: Munged) -> None:
    for clock, reason in (
        (ManualClock(int(time.time()) + 400), "expired"),
        (ManualClock(int(time.time()) - 400), "clock skew"),
    ):
        credential = read_munge(sign(munge_of(munged), ASKED))
        with pytest.raises(Unauthenticated, match=reason):
            verifier(munged, clock).verify(credential, ASKED)


def test_nonce_is_kept_longer_than_the_credential_is_valid(munged: Munged) -> None:
    class RecordingNonces(MemoryNonces):
        kept_for = 0

        def spend(self, nonce: str, uid: int, expires_at: Instant) -> bool:
            self.kept_for = expires_at - int(time.time())
            return super().spend(nonce, uid, expires_at)

    nonces = RecordingNonces()
    MungeVerifier(munge_of(munged), nonces, SystemClock(), ttl_seconds=100, skew_seconds=10).verify(
        read_munge(sign(munge_of(munged), ASKED)), ASKED
    )
    assert nonces.kept_for > 100 + 10 + 60, "even for a server whose clock is a minute behind"


def test_plain_credential_is_accepted_once_and_only_if_the_settings_allow_it(
    munged: Munged,
) -> None:
    """`munge -n` makes a credential without a payload. Another server shares the nonces, and has a
    munged that has not seen the credential.
    """
    munge, nonces = munge_of(munged), MemoryNonces()
    bound_only = MungeVerifier(munge, nonces, SystemClock())
    with pytest.raises(Unauthenticated, match="not made for Fairbank"):
        bound_only.verify(munge.encode(b""), ASKED)
    bank = MungeVerifier(munge, nonces, SystemClock(), plain=True)
    credential = munge.encode(b"")
    decoded = bank.decode_for_head(credential, ASKED)
    assert bank.accept(decoded, ASKED).uid == os.geteuid()
    with pytest.raises(Unauthenticated, match="used before"):
        bank.accept(decoded, ASKED)
    with pytest.raises(Unauthenticated, match="not made for Fairbank"):
        bank.verify(munge.encode(b"fairbank"), ASKED)
    late = MungeVerifier(munge, nonces, ManualClock(int(time.time()) + 400), plain=True)
    with pytest.raises(Unauthenticated, match="expired"):
        late.verify(munge.encode(b""), ASKED)
