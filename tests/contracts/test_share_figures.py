"""Daily figures of fair share: one per day and cluster, queried by day and account, part of a
backup.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import msgspec
import pytest

from fairbank.cluster.share import ShareQuery, ShareRecord, share_key
from fairbank.core.errors import Conflict, Corrupt
from fairbank.core.time import DAY, Instant
from fairbank.service.ops.backup import Backups
from fairbank.store.contract import Store
from fairbank.store.memory.store import MemoryStore
from tests.contracts.databases import Place
from tests.support.clock import ManualClock

EVER = ShareQuery(0, 1_000_000, users=True)


def figures(day: int, cluster: str = "darwin", usage: float = 0.1) -> list[ShareRecord]:
    record = partial(ShareRecord, cluster=cluster, day=day, at=Instant(day * DAY + 60))
    return [
        record("bio", "", "", 40, 0.4, usage, 0.0),
        record("bio", "Zoë", "", 1, 0.5, 0.0, 0.0, factor=1.0),
        record("bio", "ada", "gpu", 2**31 - 1, 1e-300, 7.1e300, 1 / 3, 1e-7, 0.25),
        record("root", "", "", None, 1.0, 2.0**70, 1.0),
    ]


def stored_figures(store: Store, query: ShareQuery = EVER) -> list[ShareRecord]:
    with store.reading() as reader:
        return reader.share_records(query)


def test_share_figures_are_read_back_bit_for_bit(store: Store) -> None:
    assert store.add_share_records(figures(20_000)) == 4
    assert stored_figures(store) == figures(20_000)
    with store.reading() as reader:
        assert sorted(reader.scan(ShareRecord), key=lambda record: record.user) == sorted(
            figures(20_000), key=lambda record: record.user
        )


def test_share_figures_are_kept_once_per_day_and_cluster(store: Store) -> None:
    assert store.add_share_records(figures(20_000)) == 4
    assert store.add_share_records(figures(20_000, usage=9.0)) == 0
    assert store.add_share_records([]) == 0
    assert store.add_share_records(figures(20_000, "frontera")) == 4
    assert store.add_share_records(figures(20_001)) == 4
    assert stored_figures(store) == figures(20_000) + figures(20_001) + figures(20_000, "frontera")


def test_later_accounts_of_a_day_are_added(store: Store) -> None:
    store.add_share_records(figures(20_000))
    new = msgspec.structs.replace(figures(20_000)[0], account="new")
    assert store.add_share_records([*figures(20_000, usage=9.0), new]) == 1
    assert stored_figures(store) == [*figures(20_000)[:3], new, figures(20_000)[3]]


def test_old_share_figures_are_deleted(store: Store) -> None:
    for day in (20_000, 20_001, 20_002):
        store.add_share_records(figures(day))
        store.add_share_records(figures(day, "frontera"))
    assert store.delete_share_records(20_002) == 16
    assert stored_figures(store) == figures(20_002) + figures(20_002, "frontera")
    assert (store.delete_share_records(20_002), store.delete_share_records(0)) == (0, 0)
    assert store.add_share_records(figures(20_000)) == 4, "nothing remembers that it was there"


def test_share_figures_come_in_pages(store: Store) -> None:
    for day in (20_000, 20_001):
        store.add_share_records(figures(day))
        store.add_share_records(figures(day, "frontera"))
    result: list[ShareRecord] = []
    while page := stored_figures(
        store, EVER._replace(limit=3, after=share_key(result[-1]) if result else None)
    ):
        result += page
    assert len(result) == 16
    assert sorted(result, key=share_key) == stored_figures(store)


def test_concurrent_recording_keeps_one_set(place: Place) -> None:
    stores = [place.open() for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        rows = list(
            threads.map(
                lambda record: record[1].add_share_records(figures(20_000, usage=float(record[0]))),
                enumerate(stores),
            )
        )
    assert sorted(rows) == [0, 0, 0, 4]
    assert stored_figures(stores[0]) == figures(20_000, usage=float(rows.index(4)))


@pytest.mark.parametrize(
    ("query", "count"),
    [
        (ShareQuery(20_000, 20_002), 8),
        (ShareQuery(20_000, 20_002, users=True), 16),
        (ShareQuery(20_001, 20_002, cluster="darwin"), 2),
        (ShareQuery(20_000, 20_001, accounts=frozenset({"bio"}), users=True), 6),
        (ShareQuery(20_000, 20_001, accounts=frozenset()), 0),
        (ShareQuery(20_000, 20_001, users=True, users_of=frozenset({"bio"})), 8),
        (ShareQuery(20_000, 20_001, users=True, users_of=frozenset({"root"})), 4),
        (ShareQuery(20_000, 20_001, users_of=frozenset({"bio"})), 4),
        (ShareQuery(20_002, 30_000), 0),
    ],
)
def test_share_figures_by_cluster_day_and_account(
    store: Store, query: ShareQuery, count: int
) -> None:
    all_rows = [
        *figures(20_000),
        *figures(20_001),
        *figures(20_000, "frontera"),
        *figures(20_001, "frontera"),
    ]
    for day in (
        figures(20_001, "frontera"),
        figures(20_001),
        figures(20_000, "frontera"),
        figures(20_000),
    ):
        store.add_share_records(day)
    result = stored_figures(store, query)
    assert len(result) == count
    assert sorted(map(repr, result)) == sorted(repr(row) for row in all_rows if query.is_match(row))


def test_share_figures_snapshot_does_not_change(store: Store) -> None:
    with store.reading() as reader:
        assert reader.share_records(EVER) == []
        store.add_share_records(figures(20_000))
        assert reader.share_records(EVER) == []
    assert stored_figures(store) == figures(20_000)


def test_share_figures_are_in_the_backup(store: Store, tmp_path: Path) -> None:
    file, clock, source = tmp_path / "x.fbk", ManualClock(Instant(0)), MemoryStore()
    source.add_share_records(figures(20_000))
    Backups(source, clock).create(file)
    store.add_share_records(figures(19_999))
    with pytest.raises(Conflict, match="not empty"):
        Backups(store, clock).restore(file)
    Backups(store, clock).restore(file, replace=True)
    assert stored_figures(store) == figures(20_000)
    Backups(store, clock).create(file, replace=True)
    Backups(source, clock).restore(file, replace=True)
    assert stored_figures(source) == figures(20_000)


@pytest.mark.parametrize("sql_place", ["sqlite"], indirect=True)
def test_invalid_share_row_is_reported(sql_place: Place) -> None:
    store = sql_place.open()
    store.add_share_records(figures(20_000))
    sql_place.run("UPDATE share_figure SET usage = 'much' WHERE login = 'ada'")
    with pytest.raises(Corrupt, match="fair share"):
        stored_figures(store)
