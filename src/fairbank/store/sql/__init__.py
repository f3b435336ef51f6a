"""Parts shared by the SQL stores."""
