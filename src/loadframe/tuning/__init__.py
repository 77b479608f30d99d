"""The search for better settings: what to try next, and what the trials say. It never touches a server."""
