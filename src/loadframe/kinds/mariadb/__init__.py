"""A MariaDB or MySQL: what is known of it, and what touches it."""
