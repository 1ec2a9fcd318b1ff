"""The conversation in an editor: `dragoman acp` speaks the Agent Client Protocol over standard input and output."""
