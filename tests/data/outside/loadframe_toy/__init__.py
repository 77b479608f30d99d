"""A server and its load driver, registered with Loadframe from a distribution of their own."""
