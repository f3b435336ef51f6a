"""Reference page of the reasons for refusals."""

from __future__ import annotations

from fairbank.bank.explaining import explained
from fairbank.cli.framework.exit_codes import REFUSED
from fairbank.rest.statuses import STATUS


def refusals_page() -> str:
    """Return the page with every reason, its status and its remedy."""
    lines = [
        "# Refusals",
        "",
        (
            "The bank's no is an answer, not an error. Jobs find theirs again with `fairbank jobs"
            " --refused`."
        ),
        "",
    ]
    lines += ["| Reason | Meaning | HTTP status | Exit code |", "| --- | --- | --- | --- |"]
    reasons = explained()
    lines += [
        f"| [{no.name}](#{no.name.lower()}) | {no.meaning} | {STATUS[no.kind]} |"
        f" {REFUSED[no.kind]} |"
        for no in reasons
    ]
    lines += [
        "",
        (
            "`fairbank help reasons` shows the following in a terminal, `fairbank help REASON` one"
            " alone."
        ),
    ]
    for no in reasons:
        lines += [
            "",
            f"## {no.name}",
            "",
            f"{no.meaning[0].upper()}{no.meaning[1:]}. {no.why}",
            "",
            f"What to do: {no.remedy}",
        ]
    return "\n".join(lines) + "\n"
