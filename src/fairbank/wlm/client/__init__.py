"""Client of the workload manager: blocking, standard library only.

`connection` has the connection to the controller, `requests` what programs ask of it.
"""
