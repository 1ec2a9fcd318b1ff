"""The browser: sessions as pages on loopback, and the conversation itself where it is asked for."""
