"""Words for on and off."""

WORDS = {"1": True, "on": True, "true": True, "yes": True, "0": False, "off": False, "false": False, "no": False}


def switch(text: object) -> bool | None:
    """Whether such a word means on; None for any other."""
    return WORDS.get(str(text).strip().lower())


def spelled(text: object) -> str:
    """The spelling to compare by: words for on and off are 1 and 0, others in lower case."""
    on = switch(text)
    return str(text).strip().lower() if on is None else str(int(on))
