"""The launcher: a small single-threaded process that starts commands for us, and the restrictions it puts on them.

It runs under `python -I -S` with nothing but the standard library, so nothing in here imports the rest of the package.
"""
