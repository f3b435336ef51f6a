"""A recorded workload run through a bank at the trace's own clock.

`plan` says how the trace meets the bank, `granting` opens the allocations, `playing` turns every start and end into wishes,
`result` reads the balances and checks that the books add up.
"""

from fairbank.service.replay.plan import Plan, Progress
from fairbank.service.replay.run import replay
from fairbank.service.replay.result import Balance, Invariant, Replayed

__all__ = ["Balance", "Invariant", "Plan", "Progress", "Replayed", "replay"]
