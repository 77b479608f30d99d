"""Secrets in texts: which names and values look like one, and the one function that hides them. Pure. Every error, all
output for people, each stored traceback and each command line that a run keeps passes through `masked`. It hides values
by their form (a password in an address, the value of an option or a variable with a secret's name), and wherever else
they occur once seen in such a place. A form is a head (`password=`, `--token `, `postgres://`) and the value behind it.
A secret is skipped whole; behind any other head the search continues at the beginning of the value. Values that are not
skipped have no head in them, or few characters, so the time is linear in the text."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import unquote

HIDDEN = "***"
SHORTEST = 8
"""Characters of a value that is hidden wherever it occurs: a shorter one may be a part of any word."""
BETWEEN = "\0"
"""Between the words of a list, as in /proc/PID/cmdline: only there a word ends."""
_NAME = re.compile(
    r"(.*_)?(passwort|(api)?key|auth|authorization|cookies?|requirepass|masterauth|jwt)(_?\d+)?|.+_(pat|keys)|(.*_)?pw"
    r"|.*(pass|pwd|tokens?)(_?\d+)?|.*(password|passwd|passphrase|secret|credential|access_key).*|pass(in|out)"
)
_NO_NAME = re.compile(
    r".*(bypass|compass)|.*(require|default)_auth|.*_(file|path|dir|folder|encryption|validation|lifetime|length)"
    r"|.*(public|primary|foreign|sort|ssl|tls|cache|index|partition)_keys?"
)
_WORD = re.compile(r"pass|pwd?|secret")
"""In the name of a value that is a secret even if it is a number."""
_OF_STUDY = re.compile(r"([a-z_]+\.)*key|workload\.options\.(keys|keep_cookies)")
"""In a study, and in errors about it, `key` is a name in a file; `keys` are a number, and `keep_cookies` yes or no."""
_PLACE = re.compile(r"\$?\{[^{}]*\}|\$\w+|\*+|\[\]|(?i:yes|no|true|false|none|null)(?!\w)")
_CLOSING = ":;,.)]}>\"'`\\"
"""After a value, not part of it."""
_FLAGS = {"redis": "-a", "valkey": "-a", "memtier": "-a", "mysql": "-p", "mariadb": "-p", "sshpass": "-p", "curl": "-u"}
"""Prefix of a program's name -> its password option; those in _GLUED have the password in the same word. That of curl
has NAME:PASSWORD, perhaps in the same word."""
_GLUED = ("mysql", "mariadb")
_ACCOUNTS = ("-u", "-U", "--user", "--proxy-user")
"""Their value is NAME:PASSWORD for curl and others."""
_HEADER = re.compile(r"(?i:(proxy-)?authorization|(set-)?cookie|x-[\w-]+)")
"""Of HTTP: its value is the rest of the line."""
_PHRASE = (
    r"(?i:requirepass|masterauth)|"  # of the configuration of Redis
    r"(?i:identified[ \t]+(?:with[ \t]+\S{1,64}[ \t]+)?(?:by|as)|password)(?=[ \t]{1,8}[\"'])"  # of SQL
)
"""Directly followed by the secret, without a sign between."""
_HEAD = re.compile(
    rf"(?<![\w.-])(?P<program>(?:{'|'.join(_FLAGS)})[\w-]*)(?=[\s\"',\0])"
    r"|(?<![\w+.-])(?P<scheme>[A-Za-z][\w+.-]*)://"
    r"|(?P<quote>[\"']?)(?<![\w.#-])(?P<name>-{0,2}[\w.-]+)(?P=quote)[ \t]{0,8}(?P<sign>==?>?|:(?!//))[ \t]{0,8}"
    r"|(?<![^\s\"'`(\[,\0])(?P<option>--?[A-Za-z][\w.-]*)(?P<apart>[ \t]+|[\"'],?\s*(?=[\"'])|\0|)"
    rf"|(?<![\w.-])(?P<phrase>{_PHRASE})(?:[ \t]{{1,8}}|[\"'],?\s*(?=[\"'])|\0)"
    r"|(?P<line>\n)"
)
_SCHEME = r"(?i:basic|bearer|digest|token)[ \t]+"
_PLAIN = re.compile(rf"(?:{_SCHEME})?(?:\[[^\]\n\0]*\]?|[^\s\0]+)")
_SENTENCE = re.compile(rf"(?!{_SCHEME})[A-Za-z][A-Za-z'-]{{0,40}}[ \t]+[A-Za-z\"'`(]")
_LINE = re.compile(r"[^\r\n\0]*")
_UNTIL = {
    BETWEEN: re.compile(r"[^\0]*(?=\0)"),
    **{mark: re.compile(rf"[^{mark}\\]*+(?:\\.[^{mark}\\]*+)*+(?={mark})", re.S) for mark in "\"'"},
    **{f"\\{mark}": re.compile(rf"[^{mark}]*(?={mark})") for mark in "\"'"},
}
_ACCOUNT = re.compile(r"(?P<mark>[\"']?)(?!-|\d+:)[^\s:\"'\0]{1,100}:(?!//)")
_PORT = re.compile(r"(?:\d{1,5}|\{\w+\}|\$\w+)(?:[/?#,\s\"']|$)")
_USER = re.compile(r"[^\s/:@?#'\"\[\0]*")
_UP_TO_SCHEME = re.compile(r"[^\s'\":\0]*+(?::(?!//)[^\s'\":\0]*+)*+")
_AT_HOST = re.compile(r"[^\s/@:'\"{}\0]+(?=@[\w\[])(?!@sha\d+:)|[^\s'\"=:\0]+={0,2}(?=@(?:\w*\(|/))")
"""Of user:password@host, or as Go's drivers write it: user:password@tcp(host:3306)/name."""
_NO_USER = ("mailto", "npm")
remembered: set[str] = set()


@lru_cache(1024)
def is_secret(name: str) -> bool:
    """Whether a variable, an option or a key of this name usually holds a secret."""
    plain = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name.strip("-")[-100:])
    plain = re.sub(r"[-.]", "_", plain).lower()
    return _NAME.fullmatch(plain) is not None and _NO_NAME.fullmatch(plain) is None


def remember(values: Iterable[str]) -> None:
    """Hide these from now on wherever they occur; not plain words and numbers, which may occur anywhere."""
    for value in values:
        remembered.update(text for text in {value, unquote(value)} if len(text) >= SHORTEST and not text.isalpha())


def masked(text: str) -> str:
    for value in sorted(remembered, key=len, reverse=True):
        text = text.replace(value, HIDDEN)
    return replaced(text, lambda *_: HIDDEN)


def masked_values(declared: Any, name: str = "") -> Any:
    """All texts in a JSON-like value. name: of the value."""
    if isinstance(declared, Mapping):
        return {key: masked_values(value, _judged_by(name, key)) for key, value in declared.items()}
    if isinstance(declared, list | tuple):
        words = [masked_values(value, name) for value in declared]
        return replaced_words(words, lambda *_: HIDDEN) if are_words(words) else words
    if isinstance(declared, str):
        return HIDDEN if is_value_of(name, declared) else masked(declared)
    return declared


def secrets_in(declared: object, name: str = "") -> Iterator[str]:
    """Secrets in tables of a study, words of a command line or a single value. name: of the value."""
    secrets: dict[str, None] = {}
    if isinstance(declared, Mapping):
        for key, value in declared.items():
            yield from secrets_in(value, _judged_by(name, key))
    elif isinstance(declared, str):
        if is_value_of(name, declared):
            yield declared
        replaced(declared, lambda secret, _: secrets.setdefault(secret) or HIDDEN)
    elif isinstance(declared, Sequence):
        if are_words(declared):
            replaced_words(declared, lambda secret, _: secrets.setdefault(secret) or HIDDEN)
        for value in declared:
            yield from secrets_in(value, name)
    yield from secrets


def _judged_by(table: str, key: object) -> str:
    """In a study, `key` is a name in a file, and `token` of a login the name of a field."""
    return "" if key == "key" or (table, key) == ("login", "token") else str(key)


def is_value_of(name: str, value: str) -> bool:
    """Whether a value is a secret by its name; a number only with a name like password."""
    if not value or _PLACE.fullmatch(value) or not is_secret(name):
        return False
    if name.upper() in ("PWD", "OLDPWD") and value.startswith("/"):  # a shell's; in a connection string, a password
        return False
    return not value.isdigit() or _WORD.search(name.lower()) is not None


def are_words(declared: Sequence[object]) -> bool:
    return len(declared) > 1 and all(isinstance(word, str) and BETWEEN not in word for word in declared)


def replaced_words(words: Sequence[Any], stand_in: Callable[[str, str], str]) -> list[str]:
    """Words (see `are_words`) with secrets replaced."""
    return replaced(BETWEEN + BETWEEN.join(words) + BETWEEN, stand_in).split(BETWEEN)[1:-1]


def replaced(text: str, stand_in: Callable[[str, str], str]) -> str:
    """stand_in: called with a secret, recognised by its form, and its name there: of an option, a variable or a kind of
    address."""
    parts, done, at, program, outer = [], 0, 0, "", (-1, "")
    while (head := _HEAD.search(text, at)) is not None:
        at, form = head.end(), head.lastgroup
        if form in ("program", "line"):
            program = head[0].strip()
            continue
        secret = _in_address(text, head) if form == "scheme" else _behind_name(text, head, program)
        if secret is None:
            outer = (at, head["name"] or head["option"] or outer[1])
            continue
        start, end, name = secret
        if form == "scheme" or not name:
            name = outer[1] if outer[0] == head.start() else head["scheme"] or ""
        parts += [text[done:start], stand_in(text[start:end], name)]
        done = at = end
    return "".join([*parts, text[done:]])


def _behind_name(text: str, head: re.Match[str], program: str) -> tuple[int, int, str] | None:
    """Where the secret behind the name of a variable or an option begins and ends, and its own name, if it has one."""
    if head["phrase"]:
        at, around = head.end(), BETWEEN if head[0].endswith(BETWEEN) else ""
        return _secret("password", text, _value(text, at, around))
    name, quote, option, sign = head.group("name", "quote", "option", "sign")
    at, around = head.end(), "" if quote else text[head.start() - 1 : head.start()]
    if around in ("'", '"') and text.endswith("\\", 0, head.start() - 1):
        around = f"\\{around}"
    name = name or option
    if name[0] == "-" and not quote:
        flag = next((flag for begins, flag in _FLAGS.items() if program.startswith(begins)), "") if program else ""
        glued = name != flag or (around.isspace() and text.startswith(("'", '"'), head.start("option") + len(flag)))
        if flag == "-p" and name.startswith(flag) and glued:
            return _secret("password", text, _value(text, head.start() + len(flag), around))
        if flag == "-u" and name.startswith(flag) and sign == ":":
            return _secret("password", text, _value(text, at, around))
        if option and not head["apart"]:
            return None
        around = "" if option and head["apart"] != BETWEEN else around
        if name in _ACCOUNTS and sign != ":":
            account = _ACCOUNT.match(text, at)
            return account and _secret("password", text, _value(text, account.end(), account["mark"] or around))
        if option and text.startswith("-", at + text.startswith(("'", '"'), at)):
            return None  # another option
        if option and name == flag and not program.startswith(_GLUED):
            return _secret("password", text, _value(text, at, around))
    if not is_secret(name) or _OF_STUDY.fullmatch(name):
        if sign != ":" or quote or around == "{" or name in _NO_USER or _PORT.match(text, at):
            return None
        password = _AT_HOST.match(text, at)
        return password and _secret("", text, password.span())
    if sign == ":" and not quote:
        if _HEADER.fullmatch(name):
            return _secret(name, text, _value(text, at, around, _LINE))
        if not text[at - 1].isspace() or _SENTENCE.match(text, at):
            return None
    return _secret(name, text, _value(text, at, around))


def _in_address(text: str, head: re.Match[str]) -> tuple[int, int, str] | None:
    """For a password behind `scheme://user:`, and for a token that is the user of a web server."""
    user = _USER.match(text, head.end())
    end = user.end() if user else head.end()
    if text.startswith("@", end):
        return _secret("", text, (head.end(), end)) if head["scheme"].lower().endswith(("http", "https")) else None
    run = _UP_TO_SCHEME.match(text, end + 1)
    if not run or not text.startswith(":", end) or text.startswith("//", end + 1) or _PORT.match(text, end + 1):
        return None  # "//": another scheme
    return _secret("", text, (end + 1, text.rfind("@", end + 1, run.end())))


def _secret(name: str, text: str, span: tuple[int, int]) -> tuple[int, int, str] | None:
    value = text[slice(*span)] if span[0] < span[1] else ""
    place = _PLACE.match(value)
    if not is_value_of(name or "password", value) or (place and not value[place.end() :].strip(_CLOSING)):
        return None
    if value.startswith(HIDDEN):  # it was hidden before: what follows is no part of it
        return None
    return (*span, name)


def _value(text: str, at: int, around: str, plain: re.Pattern[str] = _PLAIN) -> tuple[int, int]:
    """Start and end. around: the mark directly before its head, up to the next of which it extends; after an escaped
    mark the next may be escaped, too. plain: a value without marks."""
    if around != BETWEEN and text.startswith(("'", '"'), at):
        closed = _UNTIL[text[at]].match(text, at + 1) or _LINE.match(text, at + 1)
        return closed.span() if closed else (at, at)
    if around in _UNTIL and (closed := _UNTIL[around].match(text, at)) and "\n" not in closed[0]:
        return at, at + len(closed[0].rstrip("\\") if around[0] == "\\" else closed[0])
    match = plain.match(text, at)
    value = match[0] if match else ""
    place = _PLACE.match(value)
    return at, at + max(len(value if value.startswith("[") else value.rstrip(_CLOSING)), place.end() if place else 0)
