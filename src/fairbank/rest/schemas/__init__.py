"""JSON schemas of requests and responses, one module a noun, with their conversions.

Amounts are SU-minutes. Times in responses are UTC text (`2026-11-21T07:30:12Z`). Clients import
`answers`, which needs no domain types.
"""
