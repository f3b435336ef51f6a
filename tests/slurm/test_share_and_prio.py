"""`fairbank share` and `fairbank prio` on a real Slurm, run by its users: byte for byte the output
of sshare and sprio.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import pytest

from fairbank.core.slurm_numbers import U32_MAX
from tests.slurm.conftest import RecordFigure, own_cluster
from tests.slurm.lab import fairshare_recorder
from tests.slurm.lab.cluster import Cluster
from tests.slurm.lab.shell import CommandResult
from tests.slurm.readable_checkout import PYTHON, install_client, require_system_python
from tests.support.conditions import wait_until

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(900)]

RULES = {"fair tree": fairshare_recorder.FAIR_TREE, "classic": fairshare_recorder.CLASSIC}
OURS = {"sshare": "share", "sprio": "prio"}
OTHER_SPELLING = {"-h": "--noheader"}
"""Options with another spelling: -h is help here."""
OTHER_MESSAGES = {"unknown-field", "unknown-account", "unknown-user", "by-nice", "no-jobs"}
"""Forms with other error messages: unknown column, account or user, sorting by S, unknown job."""
FINER_FORMS = {("classic", name) for name in ("format-widths", "format-left", "by-fair-share")}
"""Forms that show or sort by digits of a factor that Slurm's output does not have."""
REQUIRED_FORMS = {
    "sshare": {"of-root", "long", "all", "users", "accounts"},
    "sprio": {"default", "long", "norm", "weights", "jobs", "user", "partition"},
}


class ShareUsers:
    """Users of a cluster with ended, running and pending jobs of every kind."""

    def __init__(self, slurm: Cluster, jobs: str) -> None:
        self.slurm, self.jobs = slurm, jobs
        self._environment = install_client(slurm, numbers=True)

    def run(self, user: str, *command: str) -> CommandResult:
        return self.slurm.run(user, *command)

    def fairbank(self, user: str, *arguments: str) -> CommandResult:
        return self.slurm.run(
            user, PYTHON, "-m", "fairbank.cli", *arguments, environment=self._environment
        )

    def outputs(self, user: str, *command: str) -> tuple[CommandResult, CommandResult]:
        """Return the output of Slurm's command and of Fairbank's for the same moment: Slurm's
        output is equal before and after.
        """
        outputs: list[CommandResult] = []

        def same_moment() -> bool:
            ours = (OURS[command[0]], *(OTHER_SPELLING.get(word, word) for word in command[1:]))
            outputs[:] = (
                self.run(user, *command),
                self.fairbank(user, *ours),
                self.run(user, *command),
            )
            return outputs[0] == outputs[2]

        wait_until(
            same_moment,
            f"no tick of slurmctld during `{' '.join(command)}`",
            seconds=fairshare_recorder.TICK,
        )
        return outputs[0], outputs[1]

    def commands(
        self, rule: str, command: str, forms: Mapping[str, tuple[str, ...]]
    ) -> Iterator[tuple[str, ...]]:
        """Generate users and commands, in every form of the command."""
        assert REQUIRED_FORMS[command] <= forms.keys()
        for name, (user, *words) in forms.items():
            if name not in OTHER_MESSAGES and (rule, name) not in FINER_FORMS:
                yield (user, *(self.jobs if word == "JOBS" else word for word in words))


@pytest.fixture(scope="module")
def users() -> Iterator[ShareUsers]:
    """Start a separate cluster: it gets accounts that no other test expects."""
    require_system_python()
    with own_cluster("players") as cluster:
        yield ShareUsers(cluster, fairshare_recorder.create_usage(cluster))


@pytest.mark.parametrize("rule", RULES)
def test_every_form_equals_slurms_output(
    users: ShareUsers, rule: str, record_figure: RecordFigure
) -> None:
    users.slurm.reconfigure(RULES[rule])
    before = users.run("root", *fairshare_recorder.SHARES["long-all"][1:])
    wait_until(
        lambda: users.run("root", *fairshare_recorder.SHARES["long-all"][1:]) != before,
        "slurmctld to count",
        seconds=fairshare_recorder.TICK,
    )
    compared, broken, different = 0, 0, []
    for command, forms in (
        ("sshare", fairshare_recorder.SHARES),
        ("sprio", fairshare_recorder.PRIORITIES),
    ):
        for user, *arguments in users.commands(rule, command, forms):
            theirs, ours = users.outputs(user, *arguments)
            if _is_broken(users, command, theirs):
                broken += 1
                record_figure(
                    f"{' '.join(arguments)} ended with {theirs.code}: {theirs.err.strip()};"
                    f" ours printed {len(ours.out.splitlines())} lines"
                )
                continue
            compared += 1
            if ours.out != theirs.out:
                different.append(
                    f"{user}$ {' '.join(arguments)}\n{theirs.out}{theirs.err}{user}$"
                    f" {' '.join(ours.command)}\n{ours.out}{ours.err}"
                )
    note = f"; at {broken} more sprio failed itself" if broken else ""
    record_figure(
        f"sshare and sprio compared with fairbank share and prio, {rule}: {compared} forms,"
        f" {len(different)} differ{note}"
    )
    assert different == [], "\n".join(different)


def test_priorities_beyond_32_bits_equal_sprios(users: ShareUsers) -> None:
    """slurmctld cuts them off, sprio adds the factors itself."""
    highest = {name: str(U32_MAX) for name in ("PriorityWeightFairshare", "PriorityWeightQOS")}
    users.slurm.reconfigure({**fairshare_recorder.FAIR_TREE, **highest})
    shown = users.run("root", "sprio", "--noheader", "--format=%Y").checked().out.split()
    assert max(map(int, shown)) > U32_MAX
    for name in ("default", "long", "norm"):
        user, *words = fairshare_recorder.PRIORITIES[name]
        theirs, ours = users.outputs(user, *words)
        assert ours.out == theirs.out


def _is_broken(users: ShareUsers, command: str, theirs: CommandResult) -> bool:
    """Return True if sprio itself failed: sprio of 24.11 crashes when it sorts a given priority by
    its factors, and accepts only one job after -j.
    """
    return (
        command == "sprio"
        and users.slurm.release > (22, 5)
        and (theirs.code < 0 or "Invalid job id" in theirs.err)
    )


def test_tree_has_every_account_and_user(users: ShareUsers, record_figure: RecordFigure) -> None:
    theirs, tree = (
        users.run("root", "sshare", "-a", "-P", "-n", "-o", "account,user"),
        users.fairbank("root", "share", "--tree", "-a"),
    )
    assert tree.code == 0, tree.err
    record_figure("$ fairbank share --tree -a\n" + tree.out)
    expected = [
        (len(account) - len(account.lstrip()), user or account.lstrip())
        for account, user in _cells(theirs.out)
    ]
    shown = [
        ((len(line) - len(line.lstrip())) // 2 + 1, line.split()[0])
        for line in tree.out.splitlines()[1:]
    ]
    assert len(shown) == len(expected) - 1, "all but the root"
    for (depth, name), (shown_depth, shown_name) in zip(expected[1:], shown, strict=True):
        cut = f"{name[: len(shown_name) - 1]}+" if shown_name.endswith("+") else name
        assert (depth, cut) == (shown_depth, shown_name), (
            "each below its account, in the order of sshare"
        )


def _cells(text: str) -> Iterator[list[str]]:
    return (line.split("|") for line in text.splitlines())


def test_explained_priority_equals_slurms(users: ShareUsers, record_figure: RecordFigure) -> None:
    job = users.jobs.partition(",")[0]
    theirs, explained = (
        users.run("bob", "sprio", "-h", "-j", job, "-o", "%r %Y"),
        users.fairbank("bob", "prio", "--explain", "-j", job),
    )
    record_figure(f"$ fairbank prio --explain -j {job}\n" + explained.out)
    assert explained.code == 0, explained.err
    places = [line.split() for line in theirs.out.splitlines()]
    assert len(places) == 2
    for place, priority in places:
        assert re.search(rf"partition {place}\)\npriority {int(priority):,}, ", explained.out), (
            explained.out
        )
