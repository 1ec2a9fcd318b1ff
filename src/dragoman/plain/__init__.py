"""FRONT END. The conversation line by line, for terminals without a live region."""
