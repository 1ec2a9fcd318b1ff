"""LOOP. An agent, its conversation, and turns until the model has nothing left to call."""
