"""What is known of servers: the form of each row, and how the rows of all kinds are found. Pure."""
