"""Order of the queue: usage of associations, fair share, and priorities by factors."""
