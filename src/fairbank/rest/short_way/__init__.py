"""Short ways for reports of runs, which come by the thousand: the lane past the framework, and the express past the event loop too."""
