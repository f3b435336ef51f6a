"""Replay of a recorded workload through a bank, at the times of the trace."""

from fairbank.service.replay.plan import Progress, ReplayPlan
from fairbank.service.replay.result import ReplayBalance, ReplayInvariant, ReplayResult
from fairbank.service.replay.run import replay

__all__ = ["Progress", "ReplayBalance", "ReplayInvariant", "ReplayPlan", "ReplayResult", "replay"]
