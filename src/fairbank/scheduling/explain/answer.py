"""Answer to "why does my job wait, and when will it start?". Times are seconds since 1970."""

from __future__ import annotations

from enum import Enum

import msgspec


class JobCheck(msgspec.Struct, frozen=True):
    """Condition for the start of the job, and the evidence in words."""

    what: str
    ok: bool
    evidence: str


class StartRange(msgspec.Struct, frozen=True):
    """Range of likely starts: 8 of 10 simulated runs start from `earliest` to `latest`, one starts
    before and one after.

        latest      None: in more than one of ten runs the job did not start before the simulation
                    ended
        runs        number of simulated runs
        started     number of runs in which the job started
    """

    earliest: int
    latest: int | None
    runs: int
    started: int


class NoStartRange(Enum):
    """Reason why there is no range."""

    NOT_QUEUED = "it is not in the queue, and the time when it will be is unknown"
    TOO_FAR = "simulated runs of the maximum length end before it starts"
    NO_START = "it does not start in simulated runs that go on until nothing more happens"


class EarlierStart(msgspec.Struct, frozen=True):
    """Option of sbatch that starts the job earlier, and the start with it as things are."""

    option: str
    at: int


class EarlierStartAdvice(msgspec.Struct, frozen=True):
    """Result of the search for a change that starts a job earlier. `suggestion` None: no change
    that was tried helps.

        tried    each change, as an option of sbatch or in words
    """

    suggestion: EarlierStart | None
    tried: tuple[str, ...]


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Explanation of why a job waits.

    code        Slurm's reason
    position    position in the queue, 1 for the next; None if the job is not in the queue
    ahead       numbers of the jobs ahead that want some of the nodes of its partitions, in order
    waiting     number of jobs in the queue
    expected    start if all running jobs use their whole time limit and no job comes before it;
                None if unknown
    likely      None if it was not requested, or there is none
    untold      reason why there is none; None if there is one, or it was not requested
    advice      change that starts it earlier; None if it was not requested
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
    untold: NoStartRange | None = None
    advice: EarlierStartAdvice | None = None
