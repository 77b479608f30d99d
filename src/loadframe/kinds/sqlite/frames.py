"""Functions of SQLite by the class of work that they do."""

from loadframe.knowledge.frame import FrameRow

FRAMES = (FrameRow("allocation", "user", r"sqlite3(DbM|M)alloc\w*", "SQLite src/malloc.c"),)
