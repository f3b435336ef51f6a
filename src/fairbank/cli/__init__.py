"""Our own commands: each a file, light to start, speaking to the bank over REST; the heavy ones are made of `works`."""
