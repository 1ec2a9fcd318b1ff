"""ROOM. Typed answers: what a service is asked for, and the value that comes back."""
