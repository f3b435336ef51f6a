"""Import of CSV files: jobs of any scheduler, and measured use of storage."""
