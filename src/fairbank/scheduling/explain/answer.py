"""Answer to "why does my job wait, and when will it start?". Times are seconds since 1970."""

from __future__ import annotations

from enum import Enum

import msgspec

RUNS, MIN_RUNS = 100, 10
"""Number of simulated runs for a range, and the least number, however long they take."""


class JobCheck(msgspec.Struct, frozen=True):
    """Condition for the start of the job, and the evidence in words."""

    what: str
    ok: bool
    evidence: str


class StartRange(msgspec.Struct, frozen=True):
    """Range of likely starts: 8 of 10 simulated runs start from `earliest` to `latest`, one starts
    before and one after.

        earliest    None: all runs were cut before the job started, and only `typical` is known
        median      half of the runs start by then; None: fewer start before the simulation ends
        latest      None: in more than one of ten runs the job did not start before the simulation
                    ended
        runs        number of simulated runs; 0: it can start with the next pass
        started     number of runs in which the job started
        typical     start in one more run, with the middle run times, as in `fairbank queue --all`;
                    it may be outside of the range. None: there is no such run
    """

    earliest: int | None
    median: int | None
    latest: int | None
    runs: int
    started: int
    typical: int | None = None

    @property
    def likely(self) -> int | None:
        """Likely start: the typical one, so that all commands show the same, or the median."""
        return self.median if self.typical is None else self.typical


class NoStartRange(Enum):
    """Reason why there is no range."""

    NOT_QUEUED = "it is not in the queue, and the time when it will be is unknown"
    TOO_FAR = "simulated runs of the maximum length end before it starts"
    NO_START = "it does not start in simulated runs that go on until nothing more happens"


def name_of_change(option: str, *, leaves_out: bool) -> str:
    """Return the name of a change of the request, for people."""
    return f"without {option}" if leaves_out else option


class EarlierStart(msgspec.Struct, frozen=True):
    """Option of sbatch that starts the job earlier if it is added to the request.

    With `leaves_out` the job starts earlier without the option. `at` is the start with the change
    as things are.
    """

    option: str
    at: int
    leaves_out: bool = False

    @property
    def name(self) -> str:
        """Name of the change, for people."""
        return name_of_change(self.option, leaves_out=self.leaves_out)


class EarlierStartAdvice(msgspec.Struct, frozen=True):
    """Result of the search for a change that starts a job earlier. `suggestion` None: no change
    that was tried helps.

        tried    names of all changes, for people
    """

    suggestion: EarlierStart | None
    tried: tuple[str, ...]


class BankRefusal(msgspec.Struct, frozen=True, kw_only=True):
    """Refusal of a job by the bank, in the bank's words.

    held_as     word for the reason in squeue, if the bank holds the job since it was refused; None
                if the bank would refuse it at its start
    reason      code of the reason; None if it is unknown
    remedies    what the user or staff can do, the best first
    release     who releases a held job, and with which command
    """

    held_as: str | None
    reason: str | None
    detail: str
    remedies: tuple[str, ...]
    release: str | None


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Explanation of why a job waits.

    code        Slurm's reason; that of a job whose requested nodes are down or drained is the same
                wherever it stands in the queue, where slurmctld's is Priority behind others
    position    position in the queue, 1 for the next; None if the job is not in the queue
    ahead       numbers of the jobs ahead that want some of the nodes of its partitions, in order
    waiting     number of jobs in the queue
    expected    start if all running jobs use their whole time limit and no job comes before it;
                None if unknown, as it is for a job that the bank refuses
    likely      None if it was not requested, or there is none, as for a job that the bank refuses
    missing_range_reason
                reason why there is none; None if there is one, or it was not requested
    advice      change that starts it earlier; None if it was not requested
    refusal     refusal of the bank; None if it would accept the job, or was not asked
    remedy      command that lets the job wait for nodes: that releases it if it is held, or gives
                it the longest limit that its partitions allow; None if there is none
    """

    number: int
    code: str
    headline: str
    checks: tuple[JobCheck, ...]
    position: int | None
    ahead: tuple[int, ...]
    waiting: int
    expected: int | None
    likely: StartRange | None = None
    missing_range_reason: NoStartRange | None = None
    advice: EarlierStartAdvice | None = None
    refusal: BankRefusal | None = None
    remedy: str | None = None
