"""The machines whose jobs the bank pays for, with their prices."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from fairbank.core.final_state import FinalState


class PartitionRow(Struct, frozen=True, kw_only=True):
    """Where jobs run, and how they are priced there. `weights` are billing units for one of each TRES (memory: for one MiB), exact, as a
    decimal or a fraction; null: jobs bill their CPUs. `adding` is how weighted TRES add up."""

    name: str
    resource: str
    weights: dict[str, str] | None
    adding: Literal["sum", "max_tres", "max_tres_gres"]


class ClusterRow(Struct, frozen=True, kw_only=True):
    """A cluster of the settings. A QOS that `qos_factors` does not name costs the plain price; a run that ends in one of `free_states`
    costs nothing (policy.free_states)."""

    name: str
    partitions: list[PartitionRow]
    qos_factors: dict[str, str]
    free_states: list[FinalState]
