"""The server under the application: its sockets, the connections and requests that arrive on them, and what each may take."""
