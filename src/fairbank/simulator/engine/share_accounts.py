"""Shares of accounts in Slurm's fair share, and their tree of associations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fairbank.core.errors import InvalidInput
from fairbank.priority.fairshare.tree import ShareAssociation, Tree, planted
from fairbank.simulator.traces.workload import TraceJob

ShareUser = tuple[int, int]
"""Group and user; the group is -1 if groups do not count."""

ROOT = "root"


class ShareAccounts(NamedTuple):
    """Shares of users, or with `by_group` of groups, whose users have one share each of the
    group's. Accounts that are not named have none.
    """

    shares: Mapping[int, int]
    by_group: bool = False

    def user_of(self, job: TraceJob) -> ShareUser:
        return (job.group, job.user) if self.by_group else (-1, job.user)

    def check(self) -> None:
        """Raise InvalidInput for shares that no tree accepts: those of slurmctld are integers of 32
        bits, and so is their sum.
        """
        try:
            self.tree([(account, 0) if self.by_group else (-1, account) for account in self.shares])
        except InvalidInput as bad:
            raise InvalidInput(
                f"Slurm takes no such shares: {bad.message}",
                field="shares",
                remedy="divide all of them by the same",
            ) from bad

    def tree(self, people: Sequence[ShareUser]) -> Tree:
        """Return the tree: the root, the groups if they count, and then these users, in this
        order.
        """
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
            ShareAssociation(
                str(group_number), parent=ROOT, shares=self.shares.get(group_number, 0)
            )
            for group_number in groups_of(people)
        ]
        return planted(
            [
                ShareAssociation(ROOT),
                *groups,
                *(ShareAssociation(str(group), user=str(user)) for group, user in people),
            ]
        )

    def usage(self, people: Sequence[ShareUser], used: Sequence[float]) -> list[float]:
        """Return the usage of each row of the tree with all rows below it, from the usage of the
        users.
        """
        if not self.by_group:
            return [sum(used), *used]
        of_groups = dict.fromkeys(groups_of(people), 0.0)
        for (group, _), user_usage in zip(people, used, strict=True):
            of_groups[group] += user_usage
        return [sum(used), *of_groups.values(), *used]


def groups_of(people: Sequence[ShareUser]) -> list[int]:
    """Return each group once, in the order of the users."""
    return list(dict.fromkeys(group for group, _ in people))
