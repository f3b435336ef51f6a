"""Kinds of groups by which usage is added up."""

from __future__ import annotations

from enum import Enum

OTHERS = "(others)"
"""Group of a usage that has all groups which a limit leaves out."""


class UsageBy(Enum):
    """Kind of the groups of usage, as options and requests name it."""

    USER = "user"
    PROJECT = "project"
    RESOURCE = "resource"
    CLUSTER = "cluster"
    CATEGORY = "category"
    PARTITION = "partition"
    QOS = "qos"
    ALLOCATION = "allocation"
    ALLOCATION_USER = "allocation-user"
    JOB = "job"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"

    @property
    def is_time(self) -> bool:
        """True if the groups are parts of a calendar."""
        return self in (UsageBy.DAY, UsageBy.WEEK, UsageBy.MONTH)
