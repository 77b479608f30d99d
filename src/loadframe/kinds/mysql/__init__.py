"""MySQL with InnoDB, as a private instance and where it runs already."""
