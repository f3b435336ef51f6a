"""Tokens: fewer rights than their owner, an expiry, and immediate revocation."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairbank.bank.policy import Policy
from fairbank.bank.query import Page
from fairbank.bank.token import Token
from fairbank.core.errors import FairbankError, Forbidden, InvalidInput, NotFound, Unauthenticated
from fairbank.core.time import DAY, Instant, ManualClock
from fairbank.service.access.identity import FULL, Identity, Staff, identity_of
from fairbank.service.access.tokens import CHAIN_MAX, Tokens, digest, new_secret
from fairbank.service.ledger import Ledger
from fairbank.service.write_queue.writers import WriterThreads
from fairbank.store.memory.store import MemoryStore
from tests.service.contexts import bank_context

SUPERUSER, ADMIN, SOMEBODY = 1, 2, 3
STAFF = Staff(frozenset({SUPERUSER}), frozenset({ADMIN}), {})


class RegistryHead:
    """Tokens on an empty store, and a clock that the test moves."""

    def __init__(self) -> None:
        self.store, self.clock = MemoryStore(), ManualClock(1_795_000_000)
        self.counter = WriterThreads(Ledger(self.store, Policy()))
        self.tokens = Tokens(
            bank_context(self.store, self.clock, handler=self.counter, key=b"k" * 32)
        )


@pytest.fixture
def registry() -> Iterator[RegistryHead]:
    made = RegistryHead()
    yield made
    made.counter.close()


def somebody(uid: int = SOMEBODY, scopes: frozenset[str] = FULL) -> Identity:
    return identity_of(uid, STAFF, {}, scopes=scopes)


def test_secrets_are_random_and_known_when_seen() -> None:
    secrets = {new_secret() for _ in range(500)}
    assert len(secrets) == 500
    assert {len(each) for each in secrets} == {47}
    assert all(each.startswith("fbk_") for each in secrets)


def test_only_the_secret_and_the_key_together_give_the_digest() -> None:
    secret, key = new_secret(), os.urandom(32)
    kept = digest(secret, key)
    assert kept == digest(secret, key)
    assert kept not in (digest(new_secret(), key), digest(secret, os.urandom(32)))
    assert secret.encode() not in kept
    assert kept != hashlib.blake2b(secret.encode(), digest_size=32).digest(), (
        "without the key nobody can try secrets"
    )


def test_a_token_is_found_by_its_secret_until_it_expires(registry: RegistryHead) -> None:
    token, secret = registry.tokens.create(somebody(), label="x", scopes=["read"], days=1)
    assert registry.tokens.find(secret) == token
    registry.clock.at = Instant(token.created + DAY)
    with pytest.raises(Unauthenticated, match="the token expired at"):
        registry.tokens.find(secret)


def test_a_token_made_by_a_token_lives_no_longer(registry: RegistryHead) -> None:
    first, _ = registry.tokens.create(somebody(), label="x", scopes=["read", "write"], days=1)
    by_it = identity_of(SOMEBODY, STAFF, {}, scopes=frozenset(first.scopes), until=first.expires)
    registry.clock.at = Instant(first.created + DAY // 2)
    second, _ = registry.tokens.create(by_it, label="y", scopes=["read"], days=731)
    assert second.expires == first.expires
    third, _ = registry.tokens.create(somebody(), label="z", scopes=["read"], days=731)
    assert third.expires == registry.clock.at + 731 * DAY


def by(token: Token) -> Identity:
    """Return the user who authenticated with this token."""
    return identity_of(
        token.uid, STAFF, {}, scopes=frozenset(token.scopes), until=token.expires, token=token.id
    )


def test_a_token_ends_when_the_one_that_made_it_is_revoked(registry: RegistryHead) -> None:
    """The finder of a lost token loses it, and all tokens made with tokens that it made."""
    first, _ = registry.tokens.create(somebody(), label="lost", scopes=["read", "write"], days=9)
    second, _ = registry.tokens.create(
        by(first), label="made by it", scopes=["read", "write"], days=9
    )
    third, secret = registry.tokens.create(by(second), label="and by that", scopes=["read"], days=9)
    assert (second.parent, third.parent) == (first.id, second.id)
    assert registry.tokens.find(secret) == third
    registry.clock.at = Instant(registry.clock.at + 60)
    registry.tokens.revoke(somebody(), first.id)
    with pytest.raises(Unauthenticated, match="the token by which this one was made was revoked"):
        registry.tokens.find(secret)
    assert [each.revoked for each in registry.tokens.list(somebody(), None, Page(9))] == [
        registry.clock.at
    ] * 3


def test_a_line_of_tokens_has_an_end(registry: RegistryHead) -> None:
    token, _ = registry.tokens.create(somebody(), label="first", scopes=["read", "write"], days=9)
    for _ in range(CHAIN_MAX - 1):
        token, _ = registry.tokens.create(by(token), label="next", scopes=["read", "write"], days=9)
    with pytest.raises(Forbidden, match="the last of 8"):
        registry.tokens.create(by(token), label="one more", scopes=["read"], days=9)


def test_an_unknown_secret_is_not_repeated(registry: RegistryHead) -> None:
    secret = new_secret()
    with pytest.raises(Unauthenticated) as no:
        registry.tokens.find(secret)
    assert secret not in f"{no.value.message}{no.value.remedy}"


def test_a_token_is_revoked_once(registry: RegistryHead) -> None:
    token, secret = registry.tokens.create(somebody(), label="x", scopes=["read"], days=1)
    registry.tokens.revoke(somebody(), token.id)
    with pytest.raises(Unauthenticated, match="the token was revoked at"):
        registry.tokens.find(secret)
    with pytest.raises(NotFound):
        registry.tokens.revoke(somebody(), token.id)


def test_token_of_another_user_is_not_found(registry: RegistryHead) -> None:
    token, _ = registry.tokens.create(somebody(), label="x", scopes=["read"], days=1)
    with pytest.raises(NotFound):
        registry.tokens.revoke(somebody(ADMIN), token.id)
    registry.tokens.revoke(somebody(SUPERUSER), token.id)


def test_a_read_only_asker_revokes_nothing(registry: RegistryHead) -> None:
    token, _ = registry.tokens.create(somebody(), label="x", scopes=["read"], days=1)
    with pytest.raises(Forbidden):
        registry.tokens.revoke(somebody(scopes=frozenset({"read"})), token.id)


@pytest.mark.parametrize(
    "scopes",
    [
        [],
        ["admin"],
        ["Read"],
        ["agent"],
        ["agent:"],
        ["agent:two:words"],
        ["agent:../x"],
        ["*"],
        [""],
    ],
)
def test_scopes_that_there_are_not(registry: RegistryHead, scopes: list[str]) -> None:
    with pytest.raises(InvalidInput) as bad:
        registry.tokens.create(somebody(SUPERUSER), label="x", scopes=scopes, days=1)
    assert bad.value.field == "scopes"


@given(
    uid=st.sampled_from([SUPERUSER, ADMIN, SOMEBODY]),
    having=st.frozensets(st.sampled_from(["read", "write", "agent:alpha"])),
    wanted=st.frozensets(st.sampled_from(["read", "write", "agent:alpha", "agent:beta"])),
    owner=st.sampled_from([SUPERUSER, ADMIN, SOMEBODY]),
)
def test_a_token_never_has_more_rights_than_its_maker(
    uid: int, having: frozenset[str], wanted: frozenset[str], owner: int
) -> None:
    """Only superusers grant what they do not have: an agent's scope, a token of another user."""
    registry, maker = RegistryHead(), somebody(uid, having)
    try:
        token, _ = registry.tokens.create(maker, label="x", scopes=wanted, days=1, uid=owner)
    except FairbankError:
        return
    finally:
        registry.counter.close()
    assert "write" in having
    assert set(token.scopes) & FULL <= having
    if uid != SUPERUSER:
        assert token.uid == uid
        assert not any(each.startswith("agent:") for each in token.scopes)


def test_the_scope_is_what_is_refused_where_the_token_would_be_ones_own(
    registry: RegistryHead,
) -> None:
    with pytest.raises(Forbidden, match="the scope 'agent:alpha'") as no:
        registry.tokens.create(somebody(SOMEBODY), label="x", scopes=["agent:alpha"], days=1)
    assert no.value.field == "scopes"
