"""Allocations, the rules that apply every request, prices, quotes and policy. No I/O, no clock.

Values that are created by the thousand set `gc=False`: they contain no reference cycles, so Python
need not look for them.
"""
