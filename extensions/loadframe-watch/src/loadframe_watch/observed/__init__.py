"""What production data, as monitoring writes them, say of the load of a service."""
