"""What tests start and wait for: real servers as unprivileged users, ended with the tests whatever
happens.
"""
