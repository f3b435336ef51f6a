"""What the end of a run says of slurmctld's clock. How long a run lasted is the difference of two looks at it, here as in accounting."""

from __future__ import annotations

from fairbank.slurm.records import EpilogTold

BEYOND_SECONDS = 3_600
"""How long after its limit a run may still be ending: Slurm ends them in rounds, and some centres give them time."""

_RIGHT = "keep the clocks right with chrony or ntpd, and see fairbank doctor --slurm"


def doubt_of(told: EpilogTold) -> str | None:
    """Why the clock cannot have been right while this run lasted, what the run costs, and what to do; None where it may have been."""
    if told.end < told.start:
        back = told.start - told.end
        return f"ended {back} s before it began: slurmctld's clock was set back. It costs nothing, as in accounting; {_RIGHT}"
    if told.limit_seconds is None or told.elapsed_seconds <= told.limit_seconds + BEYOND_SECONDS:
        return None
    lasted = f"lasted {told.elapsed_seconds} s with a limit of {told.limit_seconds} s"
    return f"{lasted}: was slurmctld's clock set forward? It costs that, as in accounting; give back too much by fairbank refund, {_RIGHT}"
