"""What looks like a secret is hidden, whatever it stands in; what does not stays as it is."""

import json
import shlex

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from loadframe import masking
from loadframe.errors import StudyError, TargetError
from loadframe.masking import is_secret, masked, secrets_in

PLANTED = "hunter2-Xy"


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masking, "remembered", set())


@pytest.mark.parametrize(
    "text",
    [
        "target.attach = 'postgres://shop:{}@db:5432/shop' is not HOST:PORT",
        "cannot reach redis://:{}@127.0.0.1:6379/0?db=1",
        "shop:{}@tcp(db:3306)/shop: refused",
        "host=db user=shop password={} dbname=shop",
        "host=db password='{}' dbname=shop",
        "`./app --db-password={} --port 80` failed",
        "`./app --token {} --port 80` failed",
        "PGPASSWORD={} ./app",
        'APP_SECRET_KEY = "{}"',
        '{{"user": "shop", "dbPassword": "{}"}}',
        "environment.API_TOKEN = '{}': should be a number",
        "Authorization: Bearer {}",
        "GET /?access_token={}&page=1",
        "-Dapi.key={} -Xmx64m",
        "--db 'postgres://h/db?user=u&password={}'",
        "DSN='Server=h;User=u;Password={}'",
        "--opt user=x,password={}",
        "`['./app', '--password', '{}', '--port', '80']` failed",
        '["./app", "--password", "{}"]',
        "['./app', '--password={} and more']",
        "password: {}",
        "user: shop, password: {}, port: 80",
        "--password=-{}",
        "Authorization: Token {}",
        "curl -H 'Authorization: Digest username=me, response={}' http://h/",
        "Cookie: theme=dark; session={}",
        "https://{}@host/x",
        "sending to https://me:{}@host/x?mail=me@host",
        "DBPASS={}",
        "DB_PW={}",
        "Server=h;Uid=u;Pwd={};Database=d",
        "mysql -u root -p'{}' shop",
        "JWT={}",
        "GITHUB_PAT={}",
        "auth={}",
        "auth=Bearer {}",
        "BASIC_AUTH={}",
        "access_tokens={}",
        "api_keys=['first', '{}']",
        "AWS_ACCESS_KEY_ID={}",
        "curl -u bob:{} http://h/",
        "curl --user 'bob:{}' http://h/",
        "redis-cli -h db -a {} ping",
        "/usr/bin/mysql -u root -p{} shop",
        '["mysql", "-u", "root", "-p{}"]',
        "sshpass -p {} ssh db",
        "shop:a/{}=@tcp(db:3306)/shop",
        "PRIVATE_KEY='-----BEGIN\n{}\n-----END'",
        "x password='cut off {}",
        "curl -ubob:{} http://h/",
        "CREATE USER shop IDENTIFIED BY '{}'",
        "mysql -e 'alter user shop identified by \"{}\"'",
        "CREATE USER shop IDENTIFIED WITH caching_sha2_password BY '{}'",
        "ALTER USER shop WITH PASSWORD '{}'",
        "redis-cli CONFIG SET requirepass {}",
        "port 6379\nmasterauth {}\nappendonly yes",
        "openssl rsa -passin pass:{} -in key.pem",
    ],
)
def test_a_secret_is_hidden(text: str) -> None:
    said = text.format(PLANTED)
    assert PLANTED not in masked(said)
    assert "***" in masked(said)
    assert masked(masked(said)) == masked(said)
    for error in (StudyError(said, remedy=said, details=said), TargetError("failed", details=said)):
        assert PLANTED not in str(error) + error.fact + error.remedy + error.details + repr(error)


@pytest.mark.parametrize(
    "text",
    [
        "http://127.0.0.1:8080/users/@me answers with status 503",
        "key_buffer_size = 16777216, max_tokens=100, PWD=/home/me",
        "target.setting.pool.key = 'pool.size' is not in the file",
        "--set target.settings.table_open_cache=400",
        "password_encryption = scram-sha-256",
        "PASSWORD_FILE=/run/secrets/shop",
        "Cannot attach to MariaDB at db:3306: Access denied for user 'me'@'localhost' (using password: YES)",
        "--password {ENV:SHOP_PASSWORD} --token ${TOKEN}",
        "PostgreSQL at [::1]:5432, 12:30:15 - done",
        "Key: no such file",
        "http://127.0.0.1:41234/#token=abcdefgh12345678",
        "name:tag@sha256:abcdef0123456789",
        "http://[::1]:80/@x and localhost:8080/@/x",
        "mailto:me@host",
        "--ssl-key /etc/shop.pem --tls-key=/etc/shop.pem",
        "ssl_key=/etc/shop.pem",
        "cache_key=users-by-name",
        "token: unexpected end of the file",
        "environment.API_TOKEN: should be a string",
        "password: words of a sentence",
        "docker run --user 1000:1000 -p 80:80 mysql",
        "mysql is there\nssh -p2222 -a db",
        "git@github.com:me/shop.git",
        "require_auth=scram-sha-256 --default-auth=caching_sha2",
        "each is identified by its name, and by 'its' host",
        "curl -u bob http://h/",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert masked(text) == text


def test_a_value_that_was_seen_is_hidden_wherever_it_stands() -> None:
    study = {
        "target": {
            "command": ["./app", "--token", "tok-12345678", "postgres://me:p%40ss-word1@db/x", "{port}"],
            "environment": {"DB_PASSWORD": "S3cret-one", "POOL": "4", "MODE": "fast"},
            "setting": {"pool": {"key": "pool.size", "file": "a.toml"}},
        }
    }
    found = set(secrets_in(study))
    assert found == {"tok-12345678", "p%40ss-word1", "S3cret-one"}
    masking.remember(found)
    assert masked("used tok-12345678, p@ss-word1 and S3cret-one in fast mode") == "used ***, *** and *** in fast mode"


def test_plain_words_are_not_hidden_everywhere() -> None:
    masking.remember(secrets_in({"PASSWORD": "loadframe", "DB_PWD": "1234"}))
    assert masked("loadframe measure: 1234 requests") == "loadframe measure: 1234 requests"
    assert masked("PASSWORD=loadframe") == "PASSWORD=***"


@pytest.mark.parametrize("name", ["DB_PASSWORD", "--api-key", "githubToken", "AWS_SECRET_ACCESS_KEY", "PGPASSWORD"])
def test_names_of_secrets(name: str) -> None:
    assert is_secret(name)


def test_what_follows_a_value_stays() -> None:
    assert masked("API_TOKEN = abc-123: should be a number") == "API_TOKEN = ***: should be a number"
    assert masked("run './app --token abc-123', then --port 80") == "run './app --token ***', then --port 80"


COMMANDS = [
    (["curl", "-u", f"bob:{PLANTED}"], ["curl", "-u", "bob:***"]),
    (["redis-cli", "-a", PLANTED], ["redis-cli", "-a", "***"]),
    (["/usr/bin/mysql", f"-p{PLANTED}", "-h", "db"], ["/usr/bin/mysql", "-p***", "-h", "db"]),
    (["./app", "--password", f"{PLANTED} \"of' two"], ["./app", "--password", "***"]),
    (["./app", f"--password=-{PLANTED}"], ["./app", "--password=***"]),
    (["./app", "-H", f"Authorization: Token {PLANTED}"], ["./app", "-H", "Authorization: ***"]),
    (["curl", f"-ubob:{PLANTED}"], ["curl", "-ubob:***"]),
    (["redis-cli", "config", "set", "requirepass", PLANTED], ["redis-cli", "config", "set", "requirepass", "***"]),
    (["openssl", "-passin", f"pass:{PLANTED}"], ["openssl", "-passin", "***"]),
    (["./app", "--token", "--port", "80"], ["./app", "--token", "--port", "80"]),
]


@pytest.mark.parametrize(("words", "shown"), COMMANDS)
def test_the_words_of_a_command_are_hidden_as_its_line_is(words: list[str], shown: list[str]) -> None:
    assert masking.masked_values({"command": words}) == {"command": shown}
    planted = [value for value in secrets_in({"target": {"command": words}}) if PLANTED in value]
    assert bool(planted) is (words != shown)
    assert masked(json.dumps(words)) == json.dumps(shown)
    assert PLANTED not in masked(str(words)) + masked(shlex.join(words))


def test_each_of_a_list_of_secrets_is_one() -> None:
    assert set(secrets_in({"api_keys": ["first-1", "second-2"], "tags": ["a-1"]})) == {"first-1", "second-2"}
    assert masking.masked_values({"api_keys": ["first-1"], "tags": ["a-1"]}) == {"api_keys": ["***"], "tags": ["a-1"]}


@pytest.mark.parametrize("option", ["keys", "keep_cookies"])
def test_an_option_of_a_load_that_is_no_secret_is_shown(option: str) -> None:
    assert masked(f"workload.options.{option} = -1 does not suit") == f"workload.options.{option} = -1 does not suit"


def test_the_name_of_the_field_with_a_token_is_shown() -> None:
    study = {"workload": {"login": {"token": "data.token"}, "request": [{"token": "s3cr3t"}]}}
    assert set(secrets_in(study)) == {"s3cr3t"}
    assert masking.masked_values(study)["workload"]["login"] == {"token": "data.token"}


PIECES = [
    *"\"'=:@/-{}[](),;\\\n\0 ",
    "password",
    "token",
    "key",
    "--auth",
    "-u",
    "-p",
    "mysql",
    "curl",
    "requirepass",
    "identified by",
    "https://",
    "***",
    "ab1",
]


@settings(max_examples=500, deadline=None)
@given(st.lists(st.sampled_from(PIECES)).map("".join))
@example("https://https://https://@")
@example("mysql -u -ppass:ab1 with x by:=")
def test_what_is_hidden_once_stays_as_it_is(text: str) -> None:
    assert masked(masked(text)) == masked(text)


@pytest.mark.parametrize(
    "piece",
    [
        "a=",
        "a:",
        '"',
        "password='",
        'password="\\',
        "a://a:",
        "-u",
        "mysql -p",
        "=a:b@",
        "[key=",
        '\\"pass=x ',
        "requirepass ",
        "identified with ",
    ],
)
def test_a_long_text_costs_in_proportion_to_its_length(piece: str) -> None:
    """It takes minutes if each head looks through all that follows it."""
    text = piece * ((1 << 18) // len(piece))
    hidden = masked(text)
    assert masked(hidden) == hidden
