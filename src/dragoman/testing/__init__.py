"""ANNEX. Doubles that ship: scripts, a scripted provider, loopback services with validators, cassettes."""
