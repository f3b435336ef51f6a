"""What is answered, a file an object. Instants are text in UTC (`2026-11-21T07:30:12Z`)."""

from __future__ import annotations

from fairbank.rest.bodies.answers.activity import ActivityRow, CreditRow, DebitRow, PredebitRow
from fairbank.rest.bodies.answers.alloc import (
    AllocationRow,
    BalanceRow,
    ChangedAllocation,
    DrawnRow,
)
from fairbank.rest.bodies.answers.audit import AuditAnswer, AuditCard, Head
from fairbank.rest.bodies.answers.cluster import ClusterRow, PartitionRow
from fairbank.rest.bodies.answers.envelope import (
    Granted,
    Listing,
    Problem,
    Refused,
    Resolution,
    Single,
)
from fairbank.rest.bodies.answers.job import FailureRow, JobRow, ReportAnswer, Status
from fairbank.rest.bodies.answers.project import EnteredProject, MemberRow, ProjectCard, ProjectRow
from fairbank.rest.bodies.answers.quote import QuoteCard, QuoteLine
from fairbank.rest.bodies.answers.server import Health, Myself, RoleIn, RoleWord
from fairbank.rest.bodies.answers.share import ShareDay, SharesKept
from fairbank.rest.bodies.answers.statement import (
    BookEntryRow,
    EntryRow,
    PlannedEntry,
    StatementAnswer,
    StatementPage,
    StatementRow,
    Sums,
)
from fairbank.rest.bodies.answers.token import TokenCard, TokenRow
from fairbank.rest.bodies.answers.usage import UsageRow

__all__ = [
    "ActivityRow",
    "AllocationRow",
    "AuditAnswer",
    "AuditCard",
    "BalanceRow",
    "BookEntryRow",
    "ChangedAllocation",
    "ClusterRow",
    "CreditRow",
    "DebitRow",
    "DrawnRow",
    "EnteredProject",
    "EntryRow",
    "FailureRow",
    "Granted",
    "Head",
    "Health",
    "JobRow",
    "Listing",
    "MemberRow",
    "Myself",
    "PartitionRow",
    "PlannedEntry",
    "PredebitRow",
    "Problem",
    "ProjectCard",
    "ProjectRow",
    "QuoteCard",
    "QuoteLine",
    "Refused",
    "ReportAnswer",
    "Resolution",
    "RoleIn",
    "RoleWord",
    "ShareDay",
    "SharesKept",
    "Single",
    "StatementAnswer",
    "StatementPage",
    "StatementRow",
    "Status",
    "Sums",
    "TokenCard",
    "TokenRow",
    "UsageRow",
]
