"""What looks like a secret is hidden, whatever it stands in; what does not stays as it is."""

import pytest

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
