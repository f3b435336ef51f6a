"""The bank's values as the shapes that travel, a file a noun."""

from fairbank.rest.views.alloc import allocation_row, balance_row, changed_terms
from fairbank.rest.views.envelope import by_id, cut, granted, listing, single
from fairbank.rest.views.failure import failure_row
from fairbank.rest.views.job import debit_row, job_row, predebit_row
from fairbank.rest.views.project import member_row, project_card, project_row
from fairbank.rest.views.quote import quote_card
from fairbank.rest.views.share import figures_told, key_text, moment_of, parse_key, share_day
from fairbank.rest.views.statement import entry_row, sums
from fairbank.rest.views.token import token_card, token_row
from fairbank.rest.views.usage import usage_row

__all__ = [
    "allocation_row",
    "balance_row",
    "by_id",
    "changed_terms",
    "cut",
    "debit_row",
    "entry_row",
    "failure_row",
    "figures_told",
    "granted",
    "job_row",
    "key_text",
    "listing",
    "member_row",
    "moment_of",
    "parse_key",
    "predebit_row",
    "project_card",
    "project_row",
    "quote_card",
    "share_day",
    "single",
    "sums",
    "token_card",
    "token_row",
    "usage_row",
]
