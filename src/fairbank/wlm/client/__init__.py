"""Client of the workload manager: blocking, standard library only.

`connection` has the connection to the controller, `requests` a function for each request.
"""
