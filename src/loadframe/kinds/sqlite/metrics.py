"""What is known of an SQLite database."""

ROWS = """
sqlite.database_bytes             | bytes | size of the database file
sqlite.wal_bytes                  | bytes | size of the write-ahead log
"""
"""name | unit | what."""
