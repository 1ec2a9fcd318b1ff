"""The sentences in English: one table for each topic. Another language has tables of the same names, and may lack some."""
