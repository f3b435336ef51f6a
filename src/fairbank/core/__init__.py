"""Basic values of all packages: service units, TRES, times, names, errors. No I/O, no clock."""
