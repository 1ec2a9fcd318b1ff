"""GROUND. Modules that know nothing about agents: JSON, text, files, locks, processes, concurrency limits."""
