"""Answers of a type: what a service is asked for, and the value that comes back."""
