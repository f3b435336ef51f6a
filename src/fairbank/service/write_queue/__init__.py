"""The two counters: windows in threads of the server, and the same windows in a process of their own."""
