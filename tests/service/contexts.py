"""Contexts of single use cases."""

from __future__ import annotations

from typing import Any

from fairbank.core.time import Clock
from fairbank.service.access.memberships import Memberships
from fairbank.service.project_cache import ProjectCache
from fairbank.service.use_cases import ServiceContext
from fairbank.store.contract import Store


def bank_context(store: Store, clock: Clock, **more: Any) -> ServiceContext:
    """Return the context of a use case. One that applies requests needs a `handler`."""
    return ServiceContext(
        store=store,
        clock=clock,
        project_cache=ProjectCache(store),
        memberships=Memberships(store, None),
        **{"handler": None, **more},
    )
