"""Write queue of the bank: in threads of the server, or in a process of its own."""
