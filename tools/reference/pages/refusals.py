"""Every way the bank says no."""

from __future__ import annotations

from fairbank.bank.explaining import explained
from fairbank.rest.statuses import STATUS

from fairbank.cli.exits import REFUSED


def refusals_page() -> str:
    """Every way the bank says no."""
    lines = [
        "# Refusals",
        "",
        "The bank's no is an answer, not an error. Jobs find theirs again with `fairbank jobs --refused`.",
        "",
    ]
    lines += ["| Reason | Meaning | HTTP status | Exit code |", "| --- | --- | --- | --- |"]
    reasons = explained()
    lines += [
        f"| [{no.name}](#{no.name.lower()}) | {no.meaning} | {STATUS[no.kind]} | {REFUSED[no.kind]} |"
        for no in reasons
    ]
    lines += [
        "",
        "`fairbank help reasons` shows the following in a terminal, `fairbank help REASON` one alone.",
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
