"""The one reader of each form of text that others wrote: bounded in size, depth and digits, refusing in words."""
