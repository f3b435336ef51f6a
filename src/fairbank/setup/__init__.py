"""Set-up of a bank, its server and its write queue process."""
