"""Tokens and nonces: kept, revoked, spent once on whichever server."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from fairbank.bank.token import Token
from fairbank.store.contract import Contention, Store
from fairbank.values.time import Instant
from tests.contracts.centre import Look
from tests.contracts.places import Place

NOW, LATER = Instant(1_000), Instant(2_000)
LAPTOP = Token(id=0, digest=b"\x00\xff'\\laptop", uid=1001, label="laptop", scopes=("read", "agent:darwin"), created=NOW, expires=LATER)
PHONE = msgspec.structs.replace(LAPTOP, digest=b"phone", uid=1002, scopes=())


def test_tokens_are_found_by_their_digest_and_by_their_owner(store: Store) -> None:
    laptop, phone = store.add_token(LAPTOP), store.add_token(PHONE)
    look = Look(store)
    assert look.token(LAPTOP.digest) == msgspec.structs.replace(LAPTOP, id=laptop)
    assert look.token(b"other") is None
    assert [each.id for each in look.tokens(None)] == [laptop, phone]
    assert [each.id for each in look.tokens(1002)] == [phone]
    assert look.tokens(1003) == []


def test_a_revoked_token_stays_revoked(store: Store) -> None:
    number = store.add_token(LAPTOP)
    assert store.revoke_token(number, NOW)
    assert not store.revoke_token(number, LATER)
    assert Look(store).token(LAPTOP.digest).revoked == NOW


def test_there_is_nothing_to_revoke_of_a_token_that_is_unknown_or_expired(store: Store) -> None:
    number = store.add_token(LAPTOP)
    assert not store.revoke_token(number + 1, NOW)
    assert not store.revoke_token(number, LATER)


def test_one_digest_is_one_token(sql_place: Place) -> None:
    store = sql_place.open()
    store.add_token(LAPTOP)
    with pytest.raises(Contention):
        store.add_token(LAPTOP)


def test_a_nonce_is_spent_once_until_it_expires(store: Store) -> None:
    assert store.spend(b"\x00\xffn", 1001, NOW, LATER)
    assert not store.spend(b"\x00\xffn", 1001, NOW, LATER)
    assert not store.spend(b"\x00\xffn", 1002, Instant(LATER - 1), Instant(LATER + 1))
    assert store.spend(b"other", 1001, NOW, LATER)
    assert store.spend(b"\x00\xffn", 1001, LATER, Instant(LATER + 1_000))
    assert not store.spend(b"\x00\xffn", 1001, LATER, Instant(LATER + 1_000))


def test_expired_nonces_are_forgotten(sql_place: Place) -> None:
    store = sql_place.open()
    for number in range(150):
        store.spend(b"%d" % number, 1001, NOW, LATER)
    for number in range(3):
        store.spend(b"later%d" % number, 1001, LATER, Instant(LATER + 1))
    assert sql_place.run("SELECT count(*) FROM nonce") == [(3,)]


def test_a_nonce_spent_on_many_servers_at_once_is_spent_on_one(place: Place) -> None:
    stores = [place.open(), place.open()]
    with ThreadPoolExecutor(8) as pool:
        for number in range(20):
            expiring = [pool.submit(stores[each % 2].spend, b"%d" % number, 1001, NOW, Instant(NOW + number)) for each in range(8)]
            assert sum(each.result() for each in expiring) == (1 if number else 8)


def test_a_spent_nonce_outlives_the_server(sql_place: Place) -> None:
    store = sql_place.open()
    assert store.spend(b"n", 1001, NOW, LATER)
    store.close()
    assert not sql_place.open().spend(b"n", 1001, NOW, LATER)
