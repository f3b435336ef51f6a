"""What `share compose` is made of. Nothing heavy is imported here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairbank.report.composition import AccountComposition, PartitionCharge


class Composition(Protocol):
    """The shares of all accounts, what each partition charges, and the chip by whose cores both are counted."""

    @property
    def reference(self) -> str: ...
    @property
    def shares(self) -> Sequence[AccountComposition]: ...
    @property
    def charges(self) -> Sequence[PartitionCharge]: ...
