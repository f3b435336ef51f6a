"""Client of the controller."""
