"""WHAT HAPPENED. Sessions on disk: written ahead, recovered, listed, forked, exported, imported, undone."""
