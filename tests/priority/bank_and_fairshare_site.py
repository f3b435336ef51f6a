"""Site with a bank and with fair share: both record the same runs, as at a real site.

Its stories are those of the bank (tests.bank.stories), with these additional lines:
`alice runs 1 physics 60` (60 CPUs for an hour: held, ticks of fair share, charged 60 SU);
`8 weeks pass`; `first physics` (the project whose user has the best rank under Fair Tree);
`slurm physics 20 -> ok` (the answer of GrpTRESMins with safe to a job of 20 SU).
"""

from __future__ import annotations

import numpy as np

from fairbank.bank.policy import Policy
from fairbank.core.time import DAY, Instant
from fairbank.priority.fairshare.charges import ChargedJobs
from fairbank.priority.fairshare.decay import Decay
from fairbank.priority.fairshare.fair_tree import fair_tree
from fairbank.priority.fairshare.tree import ShareAssociation, build_tree
from fairbank.priority.fairshare.usage_ticks import Rules, apply_tick, end_jobs, reset_usage
from fairbank.priority.limits.chain import Enforced
from fairbank.priority.limits.reasons import LimitKind
from fairbank.priority.limits.usage import AssociationLimits, LimitedJob, LimitUsage, Link
from tests.bank.stories import StoryRunner
from tests.priority.accounts import ALICE, CAROL, CHEM, CPU, NAMES, PAYERS, PHYSICS, job
from tests.priority.recomputed_usage import zero_usage
from tests.priority.starting_jobs import holding_limit

HOUR = 3_600
BEGIN = 1_000_000_000
GRANTS = {"physics": 100, "chem": 1_000}
"""SU, which are CPU-hours here."""
USERS, ACCOUNTS = {"alice": ALICE, "carol": CAROL}, {"physics": PHYSICS, "chem": CHEM}
NO_JOBS = job(ALICE, 0).only(np.array([False]))
TREE = build_tree(
    [
        ShareAssociation("root"),
        ShareAssociation("physics", parent="root"),
        ShareAssociation("physics", "alice"),
        ShareAssociation("optics", parent="physics"),
        ShareAssociation("optics", "bob"),
        ShareAssociation("chem", parent="root"),
        ShareAssociation("chem", "carol"),
    ]
)


class SiteWithBank:
    """Transaction data of the bank and usage of all associations. Neither has access to the
    other.
    """

    def __init__(self, decay: Decay, grants: dict[str, int] | None = None) -> None:
        self.rules = Rules(decay)
        self.bank = StoryRunner(Policy())
        self.usage = zero_usage(PAYERS, len(NAMES))
        self.now = self.last = BEGIN
        for name, granted in (grants or GRANTS).items():
            self.bank.play(f"now {self.now}")
            self.bank.play(f"project {name}")
            self.bank.play(f"open {name}/cpu 0..2000000000 with {granted}")

    def play(self, story: str) -> SiteWithBank:
        """Play a story. Raises AssertionError with the line whose outcome differs."""
        for number, line in enumerate(story.splitlines(), start=1):
            if text := line.partition("#")[0].strip():
                try:
                    self._play(text)
                except Exception as wrong:
                    raise AssertionError(f"line {number}: {text}\n{wrong!r}") from wrong
        return self

    def _play(self, line: str) -> None:
        match line.split():
            case [user, "runs", number, project, su]:
                self._run(user, number, project, int(su))
            case [weeks, "weeks", "pass"]:
                self._tick(self.now + int(weeks) * 7 * DAY)
            case ["usage", "is", "reset"]:
                self.usage = reset_usage(self.usage)
            case ["first", project]:
                assert self.first_project() == project
            case ["slurm", project, su, "->", *expected]:
                assert [self.slurm_answer(project, int(su))] == expected
            case _:
                self.bank.play(f"now {self.now}")
                self.bank.play(line)

    def _run(self, user: str, number: str, project: str, su: int) -> None:
        begin, end = self.now, self.now + HOUR
        for line in (f"now {begin}", f"hold {number} {user} {project}/cpu {su} until {end + DAY}"):
            self.bank.play(line)
        running = job(USERS[user], begin, cpus=su)
        self._tick(begin + HOUR // 2, running)
        self.now = end
        self.usage = end_jobs(
            self.usage,
            job(USERS[user], begin, end, cpus=su),
            PAYERS,
            self.rules,
            last=self.last,
            now=end,
        )
        for line in (f"now {end}", f"charge {number} {su}"):
            self.bank.play(line)

    def _tick(self, now: int, running: ChargedJobs = NO_JOBS) -> None:
        self.usage = apply_tick(self.usage, running, PAYERS, self.rules, last=self.last, now=now)
        self.now = self.last = now

    def first_project(self) -> str:
        """Return the project whose user has the best fair-share rank."""
        rank = fair_tree(TREE, self.usage.associations.raw).rank
        return "physics" if rank[ALICE] > rank[CAROL] else "chem"

    def slurm_answer(self, project: str, su: int) -> str:
        """Return the answer of a slurmctld whose GrpTRESMins is the grant: one counter, that of
        usage.
        """
        row = ACCOUNTS[project]
        used = LimitUsage(seconds={"cpu": float(self.usage.associations.tres[row, CPU])})
        limits = AssociationLimits(tres={LimitKind.GRP_TRES_MINS: {"cpu": GRANTS[project] * 60}})
        chain = (Link(name="user"), Link(name=project, limits=limits, used=used), Link(name="root"))
        hold = holding_limit(
            LimitedJob(counts={"cpu": su, "node": 1}, chain=chain, limit_minutes=60),
            Enforced(safe=True),
        )
        return hold.reason if hold else "ok"

    def journal_links(self) -> list[bytes]:
        """Return the links of the journal. They are equal only if all entries are equal."""
        assert self.bank.now <= Instant(self.now)
        return [entry.link for entry in self.bank.work.entries]
