"""The money: allocations, the ledger that judges every wish, charges, quotes, policy. No I/O, no clock."""
