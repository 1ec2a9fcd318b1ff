"""GROUND. What knows nothing of agents: JSON as text, and how many may do something at once."""
