"""Limits that concern a job: of its QOS, then from the user's association up to root."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import msgspec

from fairbank.priority.limits.reasons import ASSOC, QOS, LimitKind
from fairbank.priority.limits.usage import (
    AssociationLimits,
    Counts,
    LimitedJob,
    LimitTest,
    LimitUsage,
    QosLimits,
    in_order,
)


class Enforced(msgspec.Struct, frozen=True):
    """AccountingStorageEnforce. Without `limits` nothing is held; with `safe` only a job that can
    end within its limits starts.
    """

    limits: bool = True
    safe: bool = False

    @classmethod
    def parse(cls, text: str) -> Enforced:
        """Parse words such as `associations,limits,qos`; `safe` and `all` imply limits."""
        words = {word.strip().lower() for word in text.split(",")}
        safe = bool(words & {"safe", "all"})
        return cls(limits=safe or "limits" in words, safe=safe)


class LimitOwner(NamedTuple):
    """Association or QOS whose limits are tested. `own`: limits of a single job hold here; they do
    not on accounts above a user.
    """

    owner: str
    name: str
    limits: AssociationLimits
    used: LimitUsage
    own: bool = True

    def test(
        self,
        kind: LimitKind,
        limit: int,
        *,
        requested: int,
        tres: str | None = None,
        used: int = 0,
        running: int = 0,
        holds: bool = True,
    ) -> LimitTest:
        """Return the test of a limit of this owner.

        Args:
            kind: kind of the limit, which decides the unit: jobs, minutes or a count of TRES.
            limit: value of the limit.
            requested: what the job takes.
            tres: TRES that is limited; None: the limit is on no TRES.
            used: what was taken before.
            running: what running jobs take or may still take.
            holds: True if the limit keeps the job from starting, refuses it or ends it.
        """
        return LimitTest(
            owner=self.owner,
            name=self.name,
            kind=kind,
            limit=limit,
            requested=requested,
            tres=tres,
            used=used,
            running=running,
            holds=holds,
        )


class LimitChain:
    """Test of one job along the chain. A limit that a QOS sets is not tested again further on, TRES
    by TRES.
    """

    def __init__(self, job: LimitedJob, enforced: Enforced) -> None:
        self.job, self.enforced = job, enforced
        # Limits that a QOS has set: the kind, and the TRES if it is a limit of one.
        self._taken: set[tuple[LimitKind, str]] = set()

    def qoses(self) -> Iterator[tuple[LimitOwner, QosLimits]]:
        for qos in self.job.qoses():
            yield LimitOwner(QOS, qos.name, qos.limits, qos.used), qos

    def associations(self) -> Iterator[LimitOwner]:
        """Yield the associations. A LimitFactor of a QOS multiplies their GrpTRES and MaxTRES."""
        factor = next(
            (qos.limit_factor for qos in self.job.qoses() if qos.limit_factor is not None), 0.0
        )
        for level, link in enumerate(self.job.chain):
            limits = _scaled(link.limits, factor)
            yield LimitOwner(ASSOC, link.name, limits, link.used, own=level == 0)

    def has_set(self, *kinds: LimitKind) -> bool:
        """Return True if a QOS has set one of these limits."""
        return any((kind, "") in self._taken for kind in kinds)

    def limit(
        self, place: LimitOwner, by_kind: Mapping[LimitKind, int], kind: LimitKind
    ) -> int | None:
        """Return a limit that is on no TRES, if it is to be tested here.

        Args:
            place: association or QOS. Once a QOS has the limit, it is not tested further on.
            by_kind: limits of the place on jobs or on wall time.
        """
        limit = by_kind.get(kind)
        return limit if limit is not None and self._is_tested(place, kind, "") else None

    def limits(
        self, place: LimitOwner, kind: LimitKind, *, always: bool = False
    ) -> Iterator[tuple[str, int]]:
        """Yield the TRES and values of limits to test here.

        Args:
            place: association or QOS. Once a QOS has a limit, it is not tested further on.
            always: yield also those that an administrator set aside for the job.
        """
        for name, limit in in_order(place.limits.tres.get(kind, {})):
            if (always or name not in self.job.overridden) and self._is_tested(place, kind, name):
                yield name, limit

    def _is_tested(self, place: LimitOwner, kind: LimitKind, tres: str) -> bool:
        if (kind, tres) in self._taken:
            return False
        if place.owner == QOS:
            self._taken.add((kind, tres))
        return True

    def at_most(self, place: LimitOwner, kind: LimitKind, requested: Counts) -> Iterator[LimitTest]:
        """Yield the test of each TRES of which the job alone must not request more than a limit.

        Args:
            place: association or QOS that has the limits.
            requested: count of each TRES that the job requests, or minutes if the kind limits them.
        """
        for name, limit in self.limits(place, kind):
            amount = requested.get(name, 0)
            yield place.test(kind, limit, requested=amount, tres=name, holds=amount > limit)

    def at_least(self, place: LimitOwner) -> Iterator[LimitTest]:
        """Yield the test of each TRES of which the job must not request too little."""
        for name, limit in self.limits(place, LimitKind.MIN_TRES):
            amount = self.job.counts.get(name, 0)
            yield place.test(
                LimitKind.MIN_TRES, limit, requested=amount, tres=name, holds=amount < limit
            )

    def for_minutes(self, minutes: int) -> Counts:
        """Return the TRES-minutes that the job would take in some minutes."""
        return {name: minutes * count for name, count in self.job.counts.items()}

    def on_each_node(self) -> Counts:
        nodes = max(self.job.counts.get("node", 0), 1)
        return {name: count // nodes for name, count in self.job.counts.items()}


def _scaled(limits: AssociationLimits, factor: float) -> AssociationLimits:
    if factor <= 0:
        return limits
    scaled = {
        kind: (
            {name: int(limit * factor) for name, limit in by_tres.items()}
            if kind in (LimitKind.GRP_TRES, LimitKind.MAX_TRES)
            else by_tres
        )
        for kind, by_tres in limits.tres.items()
    }
    return msgspec.structs.replace(limits, tres=scaled)
