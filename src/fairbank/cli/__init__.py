"""Commands `fairbank` and `sproject`. Each is one file that imports little until it runs."""
