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
            f"| [{reason.name}](#{reason.name.lower()}) | {reason.info.message} "
            f"| {reason.kind.status} | {reason.kind.exit_code} |"
            for reason in Reason
        ),
        "",
        "`fairbank help reasons` shows the following in a terminal, `fairbank help REASON` one of",
        "them.",
    ]
    for reason in Reason:
        message = reason.info.message
        lines += [
            "",
            f"## {reason.name}",
            "",
            f"{message[0].upper()}{message[1:]}. {reason.info.explanation}",
            "",
            f"What to do: {reason.info.general_remedy}",
        ]
    return "\n".join(lines) + "\n"
