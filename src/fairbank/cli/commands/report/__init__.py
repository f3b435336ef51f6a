"""Commands of `fairbank report`: figures of the centre, credit, usage, fair share, priorities."""
