"""Web servers and caches: nginx, Varnish and Squid, each with what is known of it and as a private server."""
