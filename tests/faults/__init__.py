"""The queues under fault: real processes killed, stopped, cut off, on servers that die, fill up and fail over."""
