"""Text for people and programs: tables, CSV, JSON, one file per view. Pure: nothing is printed
here.
"""
