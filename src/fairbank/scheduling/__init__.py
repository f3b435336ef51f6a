"""Who starts, where and when: a pass is a function from a snapshot and the time to a plan. No I/O,
no clock, no randomness."""
