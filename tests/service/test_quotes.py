"""Cluster of a quote that names none."""

from __future__ import annotations

import pytest

from fairbank.cluster.partition import Cluster
from fairbank.core.errors import InvalidInput
from fairbank.core.time import Instant
from fairbank.service.quotes import Quotes
from fairbank.store.memory.store import MemoryStore
from tests.service.contexts import bank_context
from tests.support.clock import ManualClock


def quotes(*clusters: str) -> Quotes:
    store, clock = MemoryStore(), ManualClock(Instant(0))
    return Quotes(
        bank_context(store, clock, clusters={name: Cluster(name, {}) for name in clusters})
    )


def test_only_cluster_is_the_default() -> None:
    assert quotes("darwin").only_cluster() == "darwin"


@pytest.mark.parametrize(
    ("clusters", "known"), [((), "none"), (("darwin", "caviness"), "caviness, darwin")]
)
def test_no_default_without_exactly_one_cluster(clusters: tuple[str, ...], known: str) -> None:
    with pytest.raises(InvalidInput) as error:
        quotes(*clusters).only_cluster()
    assert error.value.field == "cluster"
    assert known in str(error.value.remedy)
