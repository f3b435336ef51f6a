"""Reports to the bank: queue, requests, results, and the status of the bank."""
