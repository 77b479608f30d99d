"""What is known of MariaDB and of MySQL alike: rows for the pages of both."""
