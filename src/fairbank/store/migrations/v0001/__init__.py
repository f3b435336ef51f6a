"""Content of the first migration. Later migrations change it; it is not edited once released."""
