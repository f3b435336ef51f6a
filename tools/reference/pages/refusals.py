"""Reference page of the reasons of refusals."""

from __future__ import annotations

from fairbank.bank.refusals import Reason


def refusals_page() -> str:
    """Return the page: a table, then a section for each reason."""
    lines = [
        "# Refusals",
        "",
        "A refusal is a normal answer of the bank, not an error. `fairbank jobs --refused` lists",
        "the refused jobs.",
        "",
        "| Reason | Meaning | HTTP status | Exit code |",
        "| --- | --- | --- | --- |",
        *(
            f"| [{each.name}](#{each.name.lower()}) | {each.info.message} "
            f"| {each.kind.status} | {each.kind.exit_code} |"
            for each in Reason
        ),
        "",
        "`fairbank help reasons` shows the following in a terminal, `fairbank help REASON` one of",
        "them.",
    ]
    for each in Reason:
        message = each.info.message
        lines += [
            "",
            f"## {each.name}",
            "",
            f"{message[0].upper()}{message[1:]}. {each.info.explanation}",
            "",
            f"What to do: {each.info.general_remedy}",
        ]
    return "\n".join(lines) + "\n"
