"""Text for people and programs: tables, CSV, JSON, one file per view. Nothing is printed here."""
