"""MAY IT RUN. Approval policy: which calls run, which are refused, and which need the user's confirmation."""
