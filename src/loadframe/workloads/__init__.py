"""Load drivers, one file each, and the request log that all of them write."""
