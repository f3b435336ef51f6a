"""Tools of the repository: import check, language check, lock files, reference pages."""
