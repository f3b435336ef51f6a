"""Every speed that we claim, one file a claim, each beside an alternative in the same run."""
