"""The money: allocations, the ledger that judges every request, charges, quotes, policy. No I/O, no clock.

Values that are made by the thousand say `gc=False`: they never point in a circle, so Python need not look for one.
"""
