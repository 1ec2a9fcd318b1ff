"""Many tasks: a front end that carries out hundreds or thousands of agent tasks, each in a process of its own."""
