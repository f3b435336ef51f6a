"""Shares in Slurm's fair share: whose they are, and the tree of associations in which they count."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fairbank.core.errors import InvalidInput
from fairbank.priority.fairshare.tree import ShareAssociation, Tree, planted
from fairbank.simulator.traces.workload import TraceJob

Who = tuple[int, int]
"""A group and a user of it; the group is -1 where groups do not count."""

ROOT = "root"


class ShareAccounts(NamedTuple):
    """The shares of users, or with `by_group` of groups, whose users have one share each of what is the group's. Whoever is not named has
    none."""

    shares: Mapping[int, int]
    by_group: bool = False

    def who(self, job: TraceJob) -> Who:
        return (job.group, job.user) if self.by_group else (-1, job.user)

    def check(self) -> None:
        """Raises InvalidInput for shares that no tree takes: those of slurmctld are whole numbers of 32 bits, and so is their sum."""
        try:
            self.tree([(each, 0) if self.by_group else (-1, each) for each in self.shares])
        except InvalidInput as bad:
            raise InvalidInput(
                f"Slurm takes no such shares: {bad.message}",
                field="shares",
                remedy="divide all of them by the same",
            ) from bad

    def tree(self, people: Sequence[Who]) -> Tree:
        """The root, the groups if they count, and then these people, in this order."""
        if not self.by_group:
            return planted(
                [
                    ShareAssociation(ROOT),
                    *(
                        ShareAssociation(ROOT, user=str(user), shares=self.shares.get(user, 0))
                        for _, user in people
                    ),
                ]
            )
        groups = [
            ShareAssociation(str(each), parent=ROOT, shares=self.shares.get(each, 0))
            for each in groups_of(people)
        ]
        return planted(
            [
                ShareAssociation(ROOT),
                *groups,
                *(ShareAssociation(str(group), user=str(user)) for group, user in people),
            ]
        )

    def usage(self, people: Sequence[Who], used: Sequence[float]) -> list[float]:
        """What each row of the tree used with all below it, from what the people used themselves."""
        if not self.by_group:
            return [sum(used), *used]
        of_groups = dict.fromkeys(groups_of(people), 0.0)
        for (group, _), each in zip(people, used, strict=True):
            of_groups[group] += each
        return [sum(used), *of_groups.values(), *used]


def groups_of(people: Sequence[Who]) -> list[int]:
    """Each once, in the order in which they come."""
    return list(dict.fromkeys(group for group, _ in people))
