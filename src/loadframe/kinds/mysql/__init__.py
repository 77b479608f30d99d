"""A MariaDB or MySQL: what is known of them, and what touches them."""
