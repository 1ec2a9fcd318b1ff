"""The terminal program. It may import everything; nothing imports it."""
