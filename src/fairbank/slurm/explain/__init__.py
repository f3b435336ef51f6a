"""Parts of the explanation why a job waits that depend on the site: its bank and its rules."""
