"""Access to the bank: identities, permissions, memberships and tokens."""
