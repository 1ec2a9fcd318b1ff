"""A boundary around commands: what they can read, write and reach, whatever they contain; and their end, with all they have started."""
