"""What is known of a server: the form of each row, and how the rows of all kinds are found. Pure, below both arms."""
