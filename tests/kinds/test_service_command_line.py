"""A command line as a person types it becomes what a study declares."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loadframe.errors import StudyError
from loadframe.experiments.beginning import of_command
from loadframe.host.environment import python
from loadframe.kinds.service.command_line import framework_of, knobs_of, parsed, runtime_of, with_knobs, with_port
from loadframe.kinds.service.discovery import interpreter_of


@pytest.mark.parametrize(
    ("text", "words", "port"),
    [
        ("python3 app.py --port 8000", ("python3", "app.py", "--port", "{port}"), 8000),
        ("python3 app.py --port=8000", ("python3", "app.py", "--port={port}"), 8000),
        ("gunicorn -b 127.0.0.1:8000 -w 2 app:app", ("gunicorn", "-b", "127.0.0.1:{port}", "-w", "2", "app:app"), 8000),
        ("uwsgi --http :9090 --wsgi-file app.py", ("uwsgi", "--http", ":{port}", "--wsgi-file", "app.py"), 9090),
        ("java -jar app.jar --server.port=8081", ("java", "-jar", "app.jar", "--server.port={port}"), 8081),
        ("python3 app.py", ("python3", "app.py"), None),
        ("python3 app.py --port zero", ("python3", "app.py", "--port", "zero"), None),
        ("./serve --port 99999", ("./serve", "--port", "99999"), None),
    ],
)
def test_its_port_is_found_where_commands_usually_have_it(text: str, words: tuple[str, ...], port: int | None) -> None:
    found = with_port(parsed(text), None)
    assert (found.words, found.port) == (words, port)
    assert found.takes_port is (port is not None)


def test_the_reader_may_say_which_number_is_the_port() -> None:
    found = with_port(parsed("./serve 8000 --size 80001 --also 18000"), 8000)
    assert found.words == ("./serve", "{port}", "--size", "80001", "--also", "18000")
    assert not with_port(parsed("./serve 8000"), 9000).takes_port


def test_variables_before_the_words_are_the_environment() -> None:
    found = with_port(parsed("PORT=3000 NAME='two words' node app.js"), None)
    assert found.words == ("node", "app.js")
    assert found.environment == {"PORT": "{port}", "NAME": "two words"}


@pytest.mark.parametrize("text", ["", "PORT=1", "a 'b", "cd x && ./run", "./run > log", "./run &"])
def test_what_only_a_shell_understands_is_refused(text: str) -> None:
    with pytest.raises(StudyError):
        parsed(text)


@given(st.lists(st.text(min_size=1), min_size=1))
def test_quoted_words_come_back_or_are_refused(words: list[str]) -> None:
    try:
        found = parsed(shlex.join(words))
    except StudyError:
        return
    count = len(found.environment)
    assert list(found.words) == words[-len(found.words) :]
    assert count <= len(words) - len(found.words)


def test_the_knobs_of_a_framework_stand_where_their_values_stood() -> None:
    line = parsed("gunicorn -w 2 --threads=8 app:app")
    found = knobs_of("python", "gunicorn", line.words, {})
    assert [(one.knob.setting, one.value, one.said) for one in found] == [
        ("workers", "2", True),
        ("threads", "8", True),
        ("backlog", "2048", False),
    ]
    assert with_knobs(line, found).words == ("gunicorn", "-w", "{workers}", "--threads={threads}", "app:app")


def test_knobs_of_the_environment_leave_it_to_the_study() -> None:
    line = parsed("UV_THREADPOOL_SIZE=8 node --max-old-space-size=64 app.js")
    found = knobs_of("node", "", line.words, line.environment)
    made = with_knobs(line, found)
    assert made.environment == {}
    assert made.words == ("node", "--max-old-space-size={heap_mb}", "app.js")


def test_a_heap_is_glued_to_its_flag() -> None:
    line = parsed("java -Xms16m -Xmx64m -jar app.jar")
    (heap,) = knobs_of("java", "", line.words, {})
    assert heap.value == "64m"
    assert with_knobs(line, [heap]).words == ("java", "-Xms16m", "-Xmx{heap}", "-jar", "app.jar")


@pytest.mark.parametrize(
    ("executable", "runtime"),
    [
        ("/usr/bin/python3.11", "python"),
        ("/usr/bin/node", "node"),
        ("/opt/jdk/bin/java", "java"),
        ("./serve", "native"),
    ],
)
def test_a_runtime_is_known_by_its_program(executable: str, runtime: str) -> None:
    assert runtime_of(executable).id == runtime
    assert runtime_of(executable, go=True).id == "go"


@pytest.mark.parametrize(
    ("command", "framework"),
    [
        (["/venv/bin/python", "/venv/bin/gunicorn", "app:app"], "gunicorn"),
        (python("uvicorn", "app:app"), "uvicorn"),
        (["gunicorn: master [app:app]"], "gunicorn"),
        (["python3", "-X", "dev", *python("gunicorn", "app:app")[1:]], "gunicorn"),
        (["python3", "app.py"], None),
    ],
)
def test_a_framework_is_known_by_a_word_of_the_command(command: list[str], framework: str | None) -> None:
    found = framework_of(command)
    assert (None if found is None else found.id) == framework


@pytest.mark.parametrize(
    ("first", "words"),
    [
        ("#!/srv/venv/bin/python3.11", "Python"),
        ("#!/usr/bin/env -S ruby -w", "Ruby"),
        ("#!/bin/sh", "a script"),
        ("no script", "a compiled program"),
    ],
)
def test_a_script_is_known_by_the_program_that_its_first_line_names(tmp_path: Path, first: str, words: str) -> None:
    """gunicorn was said to be a compiled program."""
    script = tmp_path / "gunicorn"
    script.write_text(f"{first}\nimport sys\n", encoding="utf-8")
    assert runtime_of(str(script), interpreter=interpreter_of(script)).words == words
    assert runtime_of("/usr/bin/node", interpreter="/bin/sh").words == "Node.js", "its own name says more"


def test_init_writes_what_a_script_is_run_by(tmp_path: Path) -> None:
    script = tmp_path / "gunicorn"
    script.write_text("#!/srv/venv/bin/python3\n", encoding="utf-8")
    script.chmod(0o755)
    study = of_command(f"{script} -b 127.0.0.1:8000 app:app").toml
    assert "gunicorn (Python)" in study
    assert "compiled" not in study
