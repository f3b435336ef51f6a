"""How a database becomes, and stays, what `fairbank.store.schema` describes; run by Alembic."""
