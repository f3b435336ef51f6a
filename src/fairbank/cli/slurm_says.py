"""What `share` and `prio` are made of: what Slurm says of fair share and of the jobs that wait, as rows. Nothing heavy is imported here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from fairbank.report.forecasts import Recovery
    from fairbank.report.ranking_rule import RankingRule
    from fairbank.report.sprio import PriorityRow, WeightRow
    from fairbank.report.sshare import ShareRow


class Shares(Protocol):
    """Every association of a cluster in Slurm's order, and the lines that could not be read."""

    @property
    def cluster(self) -> str | None: ...
    @property
    def as_of(self) -> int: ...
    @property
    def rule(self) -> RankingRule: ...
    @property
    def rows(self) -> Sequence[ShareRow]: ...
    @property
    def backs(self) -> Sequence[Recovery]:
        """When each is back at its share, in the order of the rows; who has no level is left out."""
        ...

    @property
    def unreadable(self) -> Sequence[str]: ...


class Priorities(Protocol):
    """Every job that waits, once for each of its partitions. `named`: accounts and QOS are known, as newer Slurms show them."""

    @property
    def cluster(self) -> str | None: ...
    @property
    def as_of(self) -> int: ...
    @property
    def weights(self) -> WeightRow: ...
    @property
    def rows(self) -> Sequence[PriorityRow]: ...
    @property
    def named(self) -> bool: ...
    @property
    def unreadable(self) -> Sequence[str]: ...


class PrioritiesAnew(Protocol):
    """What sprio says, and the same rows computed anew; `unreadable` is of everything that they are computed from."""

    @property
    def said(self) -> Priorities: ...
    @property
    def rows(self) -> Sequence[PriorityRow]:
        """Without jobs whose priority was given, and those that wait no more. Raises Malformed."""
        ...

    @property
    def unreadable(self) -> Sequence[str]: ...


class SlurmSays(Protocol):
    """The Slurm of this host, or with `folder` what one said before. These raise Trouble: Unreachable when Slurm does not answer.

    `now` is what the answers of a Slurm that is there are `as_of`.
    """

    def shares(self, folder: str | None, now: int) -> Shares: ...

    def reckoned(self, found: Shares, shares: Mapping[str, int]) -> Shares:
        """Fair share and forecasts as they would be with other shares of some accounts. Raises Unknown for one that is not there."""
        ...

    def priorities(self, folder: str | None, now: int) -> Priorities: ...

    def priorities_anew(self, folder: str | None, now: int) -> PrioritiesAnew:
        """With every factor computed from the jobs, partitions, QOS, associations, shares and usage that Slurm tells."""
        ...

    def me(self) -> str:
        """Who asks."""
        ...
