"""GROUND. Messages, records, events, usage, profiles, contracts, errors, schemas: frozen, equal by content."""
