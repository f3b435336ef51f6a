"""Set-up of a bank, its server, its write queue process and the agent; and of the bank of a cluster
of one host.
"""
