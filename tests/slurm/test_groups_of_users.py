"""Unix groups of users, by which a partition with AllowGroups accepts their jobs."""

from __future__ import annotations

import grp
import os
import pwd
from pathlib import Path

import pytest
from msgspec.structs import replace

from fairbank.cluster.partition_rules import AccessList
from fairbank.slurm.explain.queue_input import groups_of_users
from fairbank.slurm.queue_snapshot.answers import COMMANDS, QueueAnswers, read_answers

QUEUE = Path(__file__).parents[1] / "golden" / "slurm-22.05" / "queue"
USER = pwd.getpwuid(os.getuid())


def queue_with_allow_groups(partition: str) -> QueueAnswers:
    """Return the recorded queue, with the first pending job as that of the user of this process."""
    answers, _ = read_answers({name: (QUEUE / f"{name}.txt").read_text() for name in COMMANDS})
    first = next(job for job in answers.jobs if job.is_pending and job.partitions == ("cpu",))
    staff = AccessList(("staff",), "AccountNotAllowed")
    return replace(
        answers,
        jobs=[replace(first, user=USER.pw_name)],
        partitions=[
            replace(rules, groups=staff if rules.name == partition else None)
            for rules in answers.partitions
        ],
    )


def test_groups_of_the_explained_job_are_known_for_partitions_that_it_may_be_advised() -> None:
    answers = queue_with_allow_groups("gpu-t4")
    gids = os.getgrouplist(USER.pw_name, USER.pw_gid)
    own = sorted(grp.getgrgid(gid).gr_name for gid in gids)
    number = answers.jobs[0].job_id
    assert groups_of_users(answers, str(number)) == {USER.pw_name: tuple(own)}
    assert groups_of_users(answers, f"{number}_1") == {USER.pw_name: tuple(own)}
    assert groups_of_users(answers, str(number + 1)) == {}
    assert groups_of_users(queue_with_allow_groups("none"), str(number)) == {}


def test_group_without_a_name_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    nameless = 2**31 - 3
    with pytest.raises(KeyError):
        grp.getgrgid(nameless)
    monkeypatch.setattr(os, "getgrouplist", lambda user, gid: [nameless, gid])
    own = grp.getgrgid(USER.pw_gid).gr_name
    assert groups_of_users(queue_with_allow_groups("cpu"), "1") == {USER.pw_name: (own,)}


def test_user_of_another_host_has_no_known_groups() -> None:
    answers = queue_with_allow_groups("cpu")
    answers = replace(answers, jobs=[replace(answers.jobs[0], user="of-another-host")])
    assert groups_of_users(answers, "1") == {}
