"""MAY IT RUN. Who is asked, what is refused, what simply runs."""
