"""How a load goes on as its database grows."""
