"""Association that pays for a job, and the accounts above it."""

from __future__ import annotations

from fairbank.priority.associations import account_chain, own_association
from fairbank.priority.limits.usage import LimitRecord


def test_association_of_the_partition_goes_before_that_of_all() -> None:
    records = {("bio", "alice", ""): 1.0, ("bio", "alice", "gpu"): 0.0, ("bio", "", ""): 2.0}
    assert own_association(records, "bio", "alice", "gpu") == 0.0
    assert own_association(records, "bio", "alice", "cpu") == 1.0
    assert own_association(records, "bio", "bob", "cpu") is None


def test_each_account_above_comes_once_even_if_they_name_each_other() -> None:
    parents = {"root": "", "dept": "root", "bio": "dept", "lost": "nowhere", "a": "b", "b": "a"}
    records = {
        (name, "", ""): LimitRecord(name=name, parent=parent) for name, parent in parents.items()
    }

    def chain(account: str) -> list[str]:
        return [record.name for record in account_chain(records, account)]

    assert chain("bio") == ["bio", "dept", "root"]
    assert chain("lost") == ["lost"]
    assert chain("a") == ["a", "b"]
