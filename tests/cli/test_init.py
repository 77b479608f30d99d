"""loadframe init: the first study of a service of the reader's own, by its command or by its port."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import typer

import loadframe as api
from forked import Result
from loadframe.cli import init
from loadframe.host import listening
from readable import readable
from waiting import await_that

Command = Callable[..., Result]
SERVING = readable(Path(__file__).parents[1] / "kinds" / "serving.py")
NEXT = "Next: loadframe investigate serving.toml"


def starts(*more: str) -> str:
    return shlex.join(["python3", str(SERVING), *more])


@pytest.fixture
def port() -> Iterator[int]:
    """Where a service of the reader's listens."""
    with subprocess.Popen([sys.executable, str(SERVING), "--port", "0"]) as process:
        try:
            yield await_that(lambda: listening.ports_of([process.pid]), "the service listens", of=process)[0]
        finally:
            process.kill()


@pytest.mark.long
@pytest.mark.server
def test_a_command_becomes_a_study_that_is_checked_with_one_short_step(loadframe: Command, tmp_path: Path) -> None:
    done = loadframe("init", "--command", f"POOL=2 {starts('--port', '8000')}", "--path", "/config")
    assert done.code == 0, done.err
    assert "Checked: one client gets" in done.out and NEXT in done.out
    study = tomllib.loads((tmp_path / "serving.toml").read_text())
    assert study["target"]["command"] == ["python3", str(SERVING), "--port", "{port}"]
    assert study["target"]["environment"] == {"POOL": "2"}
    assert study["target"]["paths"] == "/config"
    assert study["target"]["folder"] == str(tmp_path)
    (run,) = (tmp_path / "runs").iterdir()
    assert (run / "steps.jsonl").read_text(), "what was measured is kept"


SLOW = """
import sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Slow(BaseHTTPRequestHandler):
    def do_GET(self):
        time.sleep(2)
        self.send_response(200)
        self.send_header("Content-Length", "3")
        self.end_headers()
        self.wfile.write(b"ok\\n")
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Slow).serve_forever()
"""


@pytest.mark.long
@pytest.mark.server
def test_a_service_that_takes_long_to_answer_gets_windows_in_which_that_is_enough(
    loadframe: Command, tmp_path: Path
) -> None:
    (program := tmp_path / "slow.py").write_text(SLOW)
    done = loadframe("init", "--command", f"python3 {readable(program)} {{port}}", "--name", "slow")
    assert done.code == 0, done.err
    measure = tomllib.loads((tmp_path / "slow.toml").read_text())["measure"]
    assert 10 <= int(measure["window"].removesuffix("s")) <= 20, "5 response times"
    assert 60 * int(measure["budget"].removesuffix("m")) >= 60 * int(measure["window"].removesuffix("s"))
    assert f"measure.window is {measure['window']}" in done.out and "Checked" not in done.out
    assert loadframe("study", "check", "slow.toml").code == 0


@pytest.mark.long
def test_what_is_suggested_can_be_declared_by_removing_the_comment_signs(loadframe: Command, tmp_path: Path) -> None:
    assert loadframe("init", "--command", f"POOL=2 {starts('--port', '8000')}", "--no-check").code == 0
    file = tmp_path / "serving.toml"
    head, _, rest = file.read_text().partition("confirm a cause.\n")
    commented, _, others = rest.partition("\n\n")
    file.write_text("\n".join([f"{head}confirm a cause.", *(line[2:] for line in commented.splitlines()), others]))
    assert loadframe("study", "check", "serving.toml").code == 0
    study = tomllib.loads(file.read_text())
    assert study["target"]["settings"] == {"pool": 2}
    assert study["target"]["setting"]["pool"]["name"] == "POOL"


def test_the_knobs_of_a_framework_are_declared(loadframe: Command, tmp_path: Path) -> None:
    (tmp_path / "gunicorn").write_text("#!/bin/sh\n")
    (tmp_path / "gunicorn").chmod(0o755)
    command = f"PATH={tmp_path} gunicorn -w 2 -b 127.0.0.1:8000 shop.app:app"
    done = loadframe("init", "--command", command, "--no-check", "--json")
    assert done.code == 0, done.err
    assert done.json["schema"] == "loadframe.init/1"
    assert done.json["checked"] is None
    study = tomllib.loads((tmp_path / done.json["study"]).read_text())
    assert study["study"]["name"] == "shop"
    assert study["target"]["command"] == ["gunicorn", "-w", "{workers}", "-b", "127.0.0.1:{port}", "shop.app:app"]
    assert study["target"]["settings"] == {"workers": 2}
    assert study["target"]["setting"]["workers"]["values"] == [2, 4, 8, 16]


SECRETS = {
    "DB_PASSWORD": "DB_PASSWORD=s3cret-A1 {}",
    "DATABASE_URL": "DATABASE_URL=postgres://shop:s3cret-A1@127.0.0.1:9/shop {}",
    "API_TOKEN": "{} --api-token s3cret-A1",
    "SIGNING_KEY": "{} --signing-key=s3cret-A1",
    "REDIS_PASSWORD": "{} redis://:s3cret-A1@127.0.0.1:9/0",
    "PASSWORD": "{} --opt 'postgres://127.0.0.1:9/shop?user=shop&password=s3cret-A1'",
    "SERVICE_PASSWORD": "{} shop:s3cret-A1@tcp(127.0.0.1:9)/shop",
    "DB_PASSWORD_2": "DB_PASSWORD=an-0ther1 {} --db=postgres://shop:s3cret-A1@127.0.0.1:9/shop",
}


@pytest.mark.parametrize("name", SECRETS)
def test_what_looks_like_a_secret_is_not_in_the_study(loadframe: Command, tmp_path: Path, name: str) -> None:
    done = loadframe("init", "--command", SECRETS[name].format(starts("--port", "8000")), "--no-check")
    file = tmp_path / "serving.toml"
    assert done.code == 0, done.err
    assert "s3cret-A1" not in done.out + done.err + file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    target = tomllib.loads(file.read_text())["target"]
    assert name in target["pass_environment"]
    assert f"{name}" in done.out and "Set them before each run" in done.out
    if "{} " in SECRETS[name]:
        assert sum(f"{{ENV:{name}}}" in word for word in target["command"]) == 1
    assert loadframe("study", "check", "serving.toml", **{name: "x"}).code == 0


def test_a_command_with_the_mark_of_a_port_names_no_number(loadframe: Command) -> None:
    done = loadframe("init", "--command", starts("--port", "{port}"), "--no-check")
    assert done.code == 0, done.err
    assert "listens on a free port from Loadframe." in done.err and "None" not in done.err


@pytest.mark.long
@pytest.mark.server
def test_a_service_with_secrets_is_checked_with_them_and_leaves_none(loadframe: Command, tmp_path: Path) -> None:
    script = tmp_path / "shop.py"
    script.write_text(
        "import os, sys\n"
        "print('connecting to', os.environ['DATABASE_URL'], sys.argv, flush=True)\n"
        "if not (sys.argv[3] == '--token' and sys.argv[4].endswith('-A1')): sys.exit(3)\n"
        "os.execvp('python3', ['python3', sys.argv[5], *sys.argv[1:3]])\n"
    )
    url = "DATABASE_URL=postgres://shop:s3cret-B2@127.0.0.1:9/shop"
    code = readable(script)
    command = f"{url} python3 {code} --port 8000 --token s3cret-A1 {SERVING}"
    done = loadframe("init", "--command", command, "--name", "shop")
    assert done.code == 0, done.err
    assert "Checked: one client gets" in done.out
    kept = [each for each in tmp_path.rglob("*") if each.is_file() and each != script]
    assert len(kept) > 10
    for each in kept:
        assert not re.search(b"s3cret-(A1|B2)", each.read_bytes()), each
    broken = loadframe("measure", "shop.toml", TOKEN="s3cret-C3", DATABASE_URL="postgres://shop:s3cret-B2@h/x")
    assert broken.code == 1
    assert "connecting to" in broken.err and "s3cret" not in broken.err + broken.out


@pytest.mark.long
@pytest.mark.server
def test_a_service_that_runs_is_found_at_its_port(loadframe: Command, tmp_path: Path, port: int) -> None:
    done = loadframe("init", "--port", str(port))
    assert done.code == 0, done.err
    assert "It is Python" in done.err
    assert tomllib.loads((tmp_path / "serving.toml").read_text())["target"] == {"kind": "service", "listen": port}
    assert "Checked: one client gets" in done.out
    assert "measuring 1 level: as given" in done.err
    text = (tmp_path / "serving.toml").read_text()
    assert "nothing of it is changed" in text and "Without the comment signs" not in text


@pytest.mark.long
@pytest.mark.server
def test_its_peers_and_what_is_near_are_told_of_a_service_that_runs(
    loadframe: Command, tmp_path: Path, port: int
) -> None:
    code = (
        "import resource, socket, sys\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (16, 16))\n"
        "held = [socket.create_connection(('127.0.0.1', int(sys.argv[1]))) for _ in range(3)]\n"
        "held += [open('/dev/null') for _ in range(9)]\n"
        "own = socket.create_server(('127.0.0.1', 0))\n"
        "print(own.getsockname()[1], flush=True)\n"
        "sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", code, str(port)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as service:
        assert service.stdout is not None
        own = service.stdout.readline().strip()
        done = loadframe("init", "--port", own, "--no-check", "--output", "own.toml", "--json")
    assert done.code == 0, done.err
    told = " ".join(done.json["found"])
    assert f"It has 3 connections to 127.0.0.1:{port} (python" in told
    assert "open files" in told and "16 of 16 (process.open_files)" in told
    text = (tmp_path / "own.toml").read_text()
    assert all(f"#   {sentence}\n" in text for sentence in done.json["found"])


def test_a_number_in_its_configuration_file_is_suggested(loadframe: Command, tmp_path: Path) -> None:
    (tmp_path / "shop.properties").write_text("# of the shop\nretry.count = 3\nworker.threads = 6\n")
    assert loadframe("init", "--command", starts("shop.properties", "--port", "8000"), "--no-check").code == 0
    file = tmp_path / "serving.toml"
    lines = file.read_text().splitlines()
    at = next(number for number, line in enumerate(lines) if line.startswith("# command = "))
    assert lines[at - 1].startswith("command = ") and '"{file}"' in lines[at]
    del lines[at - 1]
    key = re.compile(r"# (?=\[|[a-z_]+ = )")
    file.write_text("\n".join(key.sub("", line, count=1) if key.match(line) else line for line in lines))
    assert loadframe("study", "check", "serving.toml").code == 0
    target = tomllib.loads(file.read_text())["target"]
    assert target["settings"] == {"worker_threads": 6}
    setting = target["setting"]["worker_threads"]
    assert setting["file"] == str(tmp_path / "shop.properties") and setting["key"] == "worker.threads"


def test_a_port_that_the_program_takes_by_itself_is_named(loadframe: Command, tmp_path: Path) -> None:
    assert loadframe("init", "--command", "python3 serving.py", "--port", "8123", "--no-check").code == 0
    assert tomllib.loads((tmp_path / "serving.toml").read_text())["target"]["listen"] == 8123
    assert loadframe("study", "check", "serving.toml").code == 0


def test_what_is_there_is_never_written_over(loadframe: Command, tmp_path: Path) -> None:
    (tmp_path / "serving.toml").write_text("mine")
    done = loadframe("init", "--command", starts("--port", "8000"), "--no-check")
    assert done.code == 1
    assert "serving.toml is there already" in done.err and "--output" in done.err
    assert (tmp_path / "serving.toml").read_text() == "mine"


def test_what_another_user_puts_in_the_place_of_the_study_is_not_carried_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command, study, checked = starts("--port", "8000"), tmp_path / "shop.toml", []
    theirs = api.begin(command=command).toml.replace(str(SERVING), "theirs")

    def swapped(_: str) -> None:
        (tmp_path / "theirs").write_text(theirs)
        (tmp_path / "theirs").rename(study)

    monkeypatch.setattr(init, "say", swapped)
    monkeypatch.setattr(api, "measure", lambda declared, *_, **__: checked.append(declared))
    with pytest.raises(typer.Exit):
        init.init(start=command, port=None, pid=None, path="/", name="", file=study, check=True, runs=tmp_path,
                  as_json=False)  # fmt: skip
    assert [str(SERVING) in declared.target.command for declared in checked] == [True]
    assert "shop.toml is there already" in capsys.readouterr().err
    assert study.read_text() == theirs


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((), 2, "--command, --port or --pid"),
        (("--port", "1"), 1, "no process of this machine listens at port 1"),
        (("--pid", "2147483647"), 1, "Process 2147483647 cannot be read"),
        (("--command", "no-such-program --port 80"), 1, "there is no program no-such-program"),
        (("--command", "python3 app.py"), 1, "does not say on which port"),
        (("--command", "cd x && python3 app.py --port 80"), 1, "only a shell understands"),
        (("--command", starts("--port", "8000"), "--name", "../shop"), 2, "has lower-case letters, digits and dashes"),
        (("--command", starts("--port", "8000"), "--name", "My Shop"), 2, "--name my-shop"),
        (("--command", starts("--port", "8000"), "--path", "about"), 2, "--path 'about' is not a path"),
    ],
)
def test_a_service_that_cannot_be_found_is_told_with_what_to_do(
    loadframe: Command, tmp_path: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    done = loadframe("init", *arguments)
    assert done.code == code
    assert said in done.err
    assert not [*tmp_path.glob("*.toml"), *tmp_path.parent.glob("shop.toml")]


@pytest.mark.long
@pytest.mark.server
def test_a_service_that_does_not_start_leaves_no_study(loadframe: Command, tmp_path: Path) -> None:
    done = loadframe("init", "--command", starts("--port", "8000", "--habit", "exits"), "--json")
    assert done.code == 1
    assert done.json["schema"] == "loadframe.error/1"
    assert not list(tmp_path.glob("*.toml"))
