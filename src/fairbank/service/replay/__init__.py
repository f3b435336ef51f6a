"""A recorded workload run through a bank at the trace's own clock.

`plan` says how the trace meets the bank, `granting` opens the allocations, `playing` turns every start and end into requests,
`result` reads the balances and checks that the books add up.
"""

from fairbank.service.replay.plan import Progress, ReplayPlan
from fairbank.service.replay.result import ReplayBalance, ReplayInvariant, ReplayResult
from fairbank.service.replay.run import replay

__all__ = ["Progress", "ReplayBalance", "ReplayInvariant", "ReplayPlan", "ReplayResult", "replay"]
