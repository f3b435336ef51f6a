"""The words everybody uses: service units, TRES, instants, names and troubles. No I/O, no clock."""
