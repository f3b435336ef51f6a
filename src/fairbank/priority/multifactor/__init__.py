"""priority/multifactor: what makes up a job's priority, for a million jobs as for one (seed 002,
"The Multifactor Plugin")."""
