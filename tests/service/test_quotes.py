"""Cluster of a quote that names none."""

from __future__ import annotations

import pytest

from fairbank.cluster.partition import Cluster
from fairbank.core.errors import InvalidInput
from fairbank.core.time import Instant, ManualClock
from fairbank.service.quotes import Quotes
from fairbank.store.memory.store import MemoryStore
from tests.service.contexts import bank_context


def quotes(*clusters: str) -> Quotes:
    store, clock = MemoryStore(), ManualClock(Instant(0))
    return Quotes(
        bank_context(store, clock, clusters={name: Cluster(name, {}) for name in clusters})
    )


def test_the_only_cluster_is_meant() -> None:
    assert quotes("darwin").only_cluster() == "darwin"


@pytest.mark.parametrize(
    ("clusters", "known"), [((), "none"), (("darwin", "caviness"), "caviness, darwin")]
)
def test_of_none_or_several_none_is_meant(clusters: tuple[str, ...], known: str) -> None:
    with pytest.raises(InvalidInput) as no:
        quotes(*clusters).only_cluster()
    assert no.value.field == "cluster"
    assert known in str(no.value.remedy)
