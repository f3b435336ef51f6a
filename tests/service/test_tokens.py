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
from fairbank.core.time import DAY, Instant
from fairbank.service.access.identity import FULL, Identity, Staff, identity_of
from fairbank.service.access.tokens import CHAIN_MAX, Tokens, digest, new_secret
from fairbank.service.ledger import Ledger
from fairbank.service.write_queue.writers import WriterThreads
from fairbank.store.memory.store import MemoryStore
from tests.service.contexts import bank_context
from tests.support.clock import ManualClock

SUPERUSER, ADMIN, USER = 1, 2, 3
STAFF = Staff(frozenset({SUPERUSER}), frozenset({ADMIN}), {})


class TokenRegistry:
    """Tokens on an empty store, and a clock that the test moves."""

    def __init__(self) -> None:
        self.store, self.clock = MemoryStore(), ManualClock(1_795_000_000)
        self.write_queue = WriterThreads(Ledger(self.store, Policy()))
        self.tokens = Tokens(
            bank_context(self.store, self.clock, handler=self.write_queue, key=b"k" * 32)
        )


@pytest.fixture
def registry() -> Iterator[TokenRegistry]:
    registry = TokenRegistry()
    yield registry
    registry.write_queue.close()


def identity(uid: int = USER, scopes: frozenset[str] = FULL) -> Identity:
    return identity_of(uid, STAFF, {}, scopes=scopes)


def test_secrets_are_random_and_have_a_prefix() -> None:
    secrets = {new_secret() for _ in range(500)}
    assert len(secrets) == 500
    assert {len(secret) for secret in secrets} == {47}
    assert all(secret.startswith("fbk_") for secret in secrets)


def test_digest_needs_both_secret_and_key() -> None:
    secret, key = new_secret(), os.urandom(32)
    stored = digest(secret, key)
    assert stored == digest(secret, key)
    assert stored not in (digest(new_secret(), key), digest(secret, os.urandom(32)))
    assert secret.encode() not in stored
    assert stored != hashlib.blake2b(secret.encode(), digest_size=32).digest(), (
        "without the key nobody can try secrets"
    )


def test_token_is_found_by_its_secret_until_it_expires(registry: TokenRegistry) -> None:
    token, secret = registry.tokens.create(identity(), label="x", scopes=["read"], days=1)
    assert registry.tokens.find(secret) == token
    registry.clock.at = Instant(token.created + DAY)
    with pytest.raises(Unauthenticated, match="the token expired at"):
        registry.tokens.find(secret)


def test_token_made_by_a_token_expires_no_later(registry: TokenRegistry) -> None:
    first, _ = registry.tokens.create(identity(), label="x", scopes=["read", "write"], days=1)
    by_it = identity_of(USER, STAFF, {}, scopes=frozenset(first.scopes), until=first.expires)
    registry.clock.at = Instant(first.created + DAY // 2)
    second, _ = registry.tokens.create(by_it, label="y", scopes=["read"], days=731)
    assert second.expires == first.expires
    third, _ = registry.tokens.create(identity(), label="z", scopes=["read"], days=731)
    assert third.expires == registry.clock.at + 731 * DAY


def test_journal_entry_of_a_token_has_its_creation_time(registry: TokenRegistry) -> None:
    registry.clock.step = 1
    token, _ = registry.tokens.create(identity(), label="x", scopes=["read"], days=1)
    assert registry.tokens.list(identity(), None, Page(9)) == [token]


def identity_of_token(token: Token) -> Identity:
    """Return the user who authenticated with this token."""
    return identity_of(
        token.uid, STAFF, {}, scopes=frozenset(token.scopes), until=token.expires, token=token.id
    )


def test_revoking_a_token_revokes_the_tokens_made_with_it(registry: TokenRegistry) -> None:
    """The finder of a lost token loses it, and all tokens made with tokens that it made."""
    first, _ = registry.tokens.create(identity(), label="lost", scopes=["read", "write"], days=9)
    second, _ = registry.tokens.create(
        identity_of_token(first), label="made by it", scopes=["read", "write"], days=9
    )
    third, secret = registry.tokens.create(
        identity_of_token(second), label="and by that", scopes=["read"], days=9
    )
    assert (second.parent, third.parent) == (first.id, second.id)
    assert registry.tokens.find(secret) == third
    registry.clock.at = Instant(registry.clock.at + 60)
    registry.tokens.revoke(identity(), first.id)
    with pytest.raises(Unauthenticated, match="the token by which this one was made was revoked"):
        registry.tokens.find(secret)
    assert [token.revoked for token in registry.tokens.list(identity(), None, Page(9))] == [
        registry.clock.at
    ] * 3


def test_chain_of_tokens_has_a_maximum_length(registry: TokenRegistry) -> None:
    token, _ = registry.tokens.create(identity(), label="first", scopes=["read", "write"], days=9)
    for _ in range(CHAIN_MAX - 1):
        token, _ = registry.tokens.create(
            identity_of_token(token), label="next", scopes=["read", "write"], days=9
        )
    with pytest.raises(Forbidden, match="the last of 8"):
        registry.tokens.create(identity_of_token(token), label="one more", scopes=["read"], days=9)


def test_unknown_secret_is_not_repeated(registry: TokenRegistry) -> None:
    secret = new_secret()
    with pytest.raises(Unauthenticated) as error:
        registry.tokens.find(secret)
    assert secret not in f"{error.value.message}{error.value.remedy}"


def test_token_is_revoked_once(registry: TokenRegistry) -> None:
    token, secret = registry.tokens.create(identity(), label="x", scopes=["read"], days=1)
    registry.tokens.revoke(identity(), token.id)
    with pytest.raises(Unauthenticated, match="the token was revoked at"):
        registry.tokens.find(secret)
    with pytest.raises(NotFound):
        registry.tokens.revoke(identity(), token.id)


def test_token_of_another_user_is_not_found(registry: TokenRegistry) -> None:
    token, _ = registry.tokens.create(identity(), label="x", scopes=["read"], days=1)
    with pytest.raises(NotFound):
        registry.tokens.revoke(identity(ADMIN), token.id)
    registry.tokens.revoke(identity(SUPERUSER), token.id)


def test_token_that_reads_lists_the_tokens_of_its_owner_only(registry: TokenRegistry) -> None:
    token, _ = registry.tokens.create(identity(SUPERUSER), label="x", scopes=["read"], days=1)
    reader, page = identity(SUPERUSER, frozenset({"read"})), Page(10)
    assert [listed.id for listed in registry.tokens.list(reader, None, page)] == [token.id]
    with pytest.raises(Forbidden):
        registry.tokens.list(reader, USER, page)
    assert registry.tokens.list(identity(SUPERUSER), USER, page) == []


def test_read_only_token_cannot_revoke(registry: TokenRegistry) -> None:
    token, _ = registry.tokens.create(identity(), label="x", scopes=["read"], days=1)
    with pytest.raises(Forbidden):
        registry.tokens.revoke(identity(scopes=frozenset({"read"})), token.id)


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
def test_unknown_scopes_are_refused(registry: TokenRegistry, scopes: list[str]) -> None:
    with pytest.raises(InvalidInput) as error:
        registry.tokens.create(identity(SUPERUSER), label="x", scopes=scopes, days=1)
    assert error.value.field == "scopes"


@given(
    uid=st.sampled_from([SUPERUSER, ADMIN, USER]),
    having=st.frozensets(st.sampled_from(["read", "write", "agent:alpha"])),
    requested=st.frozensets(st.sampled_from(["read", "write", "agent:alpha", "agent:beta"])),
    owner=st.sampled_from([SUPERUSER, ADMIN, USER]),
)
def test_token_never_has_more_rights_than_its_maker(
    uid: int, having: frozenset[str], requested: frozenset[str], owner: int
) -> None:
    """Only superusers grant what they do not have: an agent's scope, a token of another user."""
    registry, maker = TokenRegistry(), identity(uid, having)
    try:
        token, _ = registry.tokens.create(maker, label="x", scopes=requested, days=1, uid=owner)
    except FairbankError:
        return
    finally:
        registry.write_queue.close()
    assert "write" in having
    assert set(token.scopes) & FULL <= having
    if uid != SUPERUSER:
        assert token.uid == uid
        assert not any(scope.startswith("agent:") for scope in token.scopes)


def test_refused_scope_is_named_for_an_own_token(registry: TokenRegistry) -> None:
    with pytest.raises(Forbidden, match="the scope 'agent:alpha'") as error:
        registry.tokens.create(identity(USER), label="x", scopes=["agent:alpha"], days=1)
    assert error.value.field == "scopes"
