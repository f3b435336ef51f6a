"""Fair share and priorities as Slurm tells them, as the rows that `share` and `prio` print (cli.standings.Standings)."""

from __future__ import annotations

import os
import pwd
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from fairbank.cli.zone import Local
from fairbank.compose.forecasts import backs_of
from fairbank.priority.multifactor.settings import Weights as Weighed
from fairbank.priority.resets import next_reset
from fairbank.priority.settings import Algorithm, FairShare, PrioritySettings
from fairbank.report.forecasts import Back
from fairbank.report.priorities import Rank, Weights
from fairbank.report.rule import Rule
from fairbank.report.shares import PARENT, ShareRow
from fairbank.slurm.answers import shares
from fairbank.slurm.answers.conf import read_conf
from fairbank.slurm.answers.priority import FLAGS, TRES, flags_in_doubt, read_settings
from fairbank.slurm.answers.scontrol import read_clock, read_config
from fairbank.slurm.answers.shares import Share, read_shares
from fairbank.slurm.answers.sprio import FACTOR_DIGITS, TRES_DIGITS, Factors, read_factors, unrounded
from fairbank.slurm.answers.squeue import read_waiting
from fairbank.slurm.answers.values import Answer, Waiting
from fairbank.slurm.answers.version import Version, read_version
from fairbank.slurm.commands import Slurm
from fairbank.values.trouble import Malformed, Unknown

SHARES, RANKS, WAITING, SETTINGS, CONF = "sshare.txt", "sprio.txt", "squeue.txt", "config.txt", "slurm.conf"
"""The files of a folder with what Slurm said."""
NAMED_SINCE = Version(23, 2, 0)
"""From here on sprio tells account and QOS."""


RANKS_APART = 500_000
"""So many users' ranks differ in the six digits that sshare prints."""


class Shares(NamedTuple):
    cluster: str | None
    as_of: int | None
    rule: Rule
    rows: Sequence[ShareRow]
    unreadable: Sequence[str]

    @property
    def backs(self) -> Sequence[Back]:
        """Computed when it is asked for: most forms show nothing of it."""
        return backs_of(self.rows, self.rule, oblivious=self.rule.depth_oblivious)


class Ranks(NamedTuple):
    cluster: str | None
    as_of: int | None
    weights: Weights
    rows: Sequence[Rank]
    named: bool
    unreadable: Sequence[str]


class Said:
    """A folder with what a Slurm said: it answers as one that is there."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    @property
    def config(self) -> Mapping[str, str]:
        return read_config(self._text(SETTINGS))

    @property
    def cluster(self) -> str:
        return self.config.get("ClusterName", "")

    @property
    def version(self) -> Version:
        """Raises Malformed."""
        return read_version(f"slurm {self.config.get('SLURM_VERSION', '')}")

    def clock(self) -> int:
        """When it said so; it must have spoken in UTC."""
        return read_clock(self._text(SETTINGS))

    def shares(self) -> Answer[Share]:
        return read_shares(self._text(SHARES))

    def factors(self) -> Answer[Factors]:
        return read_factors(self._text(RANKS))

    def waiting(self) -> Answer[Waiting]:
        return read_waiting(self._text(WAITING)) if (self._folder / WAITING).exists() else Answer(())

    def priority(self) -> PrioritySettings:
        in_doubt = flags_in_doubt(self.config) and (self._folder / CONF).exists()
        return read_settings(self.config, read_conf(self._text(CONF)).settings.get(FLAGS.lower()) if in_doubt else None)

    def _text(self, name: str) -> str:
        try:
            return (self._folder / name).read_text(errors="replace")
        except FileNotFoundError as missing:
            raise Unknown(f"there is no {name} in {self._folder}", field="--from", remedy=_HOW) from missing
        except OSError as wrong:
            raise Malformed(f"cannot read {self._folder / name}: {wrong.strerror}", field="--from", remedy=_HOW) from wrong


_HOW = f"the folder has {SHARES}, {RANKS} and {SETTINGS}; docs/howto/explain-fair-share.md says what to ask Slurm"


class Standings:
    """The Slurm of this host, or what one said before."""

    def shares(self, folder: str | None) -> Shares:
        source = Said(folder) if folder else Slurm()
        answer, settings = source.shares(), source.priority()
        as_of = _as_of(source)
        rule = rule_of(settings.fair_share, int(time.time()) if as_of is None else as_of)
        rows = share_rows(answer.rows, fair_tree=rule.fair_tree)
        return Shares(source.cluster or None, as_of, rule, rows, _told(answer))

    def ranks(self, folder: str | None) -> Ranks:
        """Raises Malformed where jobs are not ranked by factors."""
        source = Said(folder) if folder else Slurm()
        settings = source.priority()
        if not settings.by_factors:
            remedy = "it is priority/multifactor that has factors"
            raise Malformed("this Slurm starts jobs in their order, without factors", field="PriorityType", remedy=remedy)
        answer, waiting, weights = source.factors(), source.waiting(), weights_of(settings.factors.weights, source.config.get(TRES, ""))
        whose = {job.job_id: (job.account, job.qos) for job in waiting.rows}
        rows = [rank_of(row, weights, whose) for row in answer.rows]
        unreadable = (*_told(answer), *_told(waiting))
        return Ranks(source.cluster or None, _as_of(source), weights, rows, source.version >= NAMED_SINCE, unreadable)

    def me(self) -> str:
        """Who asks; a number where this host has no name for them."""
        uid = os.geteuid()
        try:
            return pwd.getpwuid(uid).pw_name
        except KeyError:
            return str(uid)


def _as_of(source: Said | Slurm) -> int | None:
    return source.clock() if isinstance(source, Said) else None


def _told(answer: Answer[Share] | Answer[Factors] | Answer[Waiting]) -> tuple[str, ...]:
    return tuple(map(str, answer.unreadable))


def share_rows(told: Sequence[Share], *, fair_tree: bool) -> list[ShareRow]:
    """All that sshare told, in its order. Fair Tree's factors are ranks out of so many users: all their digits are known again from the
    six that it prints, unless it hides some users from us."""
    rows = [standing_of(row) for row in told]
    users = sum(1 for row in rows if row.user)
    if not fair_tree or users > RANKS_APART:
        return rows
    exact = [row.factor if row.factor is None else round(row.factor * users) / users for row in rows]
    if any(row.factor is not None and f"{row.factor:f}" != f"{factor:f}" for row, factor in zip(rows, exact, strict=True)):
        return rows
    return [row._replace(factor=factor) for row, factor in zip(rows, exact, strict=True)]


def standing_of(row: Share) -> ShareRow:
    return ShareRow(
        account=row.account,
        user=row.user,
        partition=row.partition,
        parent=row.parent,
        shares=PARENT if row.shares == shares.PARENT else row.shares if isinstance(row.shares, int) else None,
        norm_shares=row.norm_shares,
        usage=row.usage,
        norm_usage=row.norm_usage,
        effective=row.effective,
        factor=row.factor,
        level=row.level,
        limits=row.limits,
        used=row.used,
        running=row.running,
        cluster=row.cluster,
        number=row.number,
    )


def rule_of(settings: FairShare, now: int) -> Rule:
    """Resets come by slurmctld's local time, which is taken to be that of this host."""
    reset = next_reset(settings.reset, now, Local())
    return Rule(
        settings.algorithm is Algorithm.FAIR_TREE,
        settings.half_life_seconds,
        settings.dampening,
        settings.algorithm is Algorithm.DEPTH_OBLIVIOUS,
        None if reset is None else reset - now,
    )


def weights_of(weights: Weighed, tres_text: str) -> Weights:
    """`tres_text`: PriorityWeightTRES as the settings have it."""
    return Weights(
        age=weights.age,
        association=weights.association,
        fair_share=weights.fairshare,
        size=weights.job_size,
        place=weights.partition,
        qos=weights.qos,
        tres=weights.tres,
        tres_text=tres_text,
    )


def rank_of(row: Factors, weights: Weights, accounts: Mapping[int, tuple[str, str]] | None = None) -> Rank:
    """The job with factors that are printed in both columns as sprio printed them. `accounts` are the jobs' accounts and QOS, where they
    are known."""
    account, qos_name = (accounts or {}).get(row.job, ("", ""))

    def factor(letter: str, weight: int) -> float:
        return unrounded(row.weighted[letter], row.normal[letter], weight, FACTOR_DIGITS)

    return Rank(
        job=row.job,
        partition=row.partition,
        user=row.user,
        account=account,
        qos_name=qos_name,
        cluster=row.cluster,
        age=factor("a", weights.age),
        association=factor("b", weights.association),
        fair_share=factor("f", weights.fair_share),
        size=factor("j", weights.size),
        place=factor("p", weights.place),
        qos=factor("q", weights.qos),
        tres={
            name: unrounded(value, row.tres_normal.get(name, 0.0), weights.tres.get(name, 0.0), TRES_DIGITS)
            for name, value in row.tres.items()
        },
        site=row.site,
        nice=row.nice,
        direct=row.priority if row.given else None,
        total=row.total,
    )
