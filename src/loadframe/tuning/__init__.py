"""The search for better settings: what to try next, and what the trials show. It never touches a server."""
