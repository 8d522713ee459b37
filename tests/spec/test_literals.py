"""What looks like a secret is found, and what only looks a little like one is left alone."""

from __future__ import annotations

from typing import Any

import pytest

from kubexm.document import literals


def said(data: Any) -> list[str]:
    return [finding.message for finding in literals.findings(data)]


@pytest.mark.parametrize(
    "data",
    [
        {"argv": ["mysql", "--password", "hunter2"]},
        {"argv": ["tool", "--api-key", "abc123"]},
        {"argv": ["curl", "-H", "Authorization: Bearer abc123def"]},
        {"content": "user=x\npassword=hunter2\n"},
        {"content": "token: ghp_0123456789abcdef\n"},
        {"content": "export AWS_SECRET_ACCESS_KEY=abc/123+x\n"},
        {"content": '{\n  "apiKey": "abc123x",\n}'},
        {"text": "[db]\n  password = 'hunter2'  # change it\n"},
        {"line": "db_password = hunter2"},
        {"stdin": "passphrase: hunter2"},
        {"argv": ["env", "DB_PASSWORD=hunter2", "serve"]},
        {"argv": ["curl", "-u", "shop:hunter2", "https://shop.example"]},
        {"argv": ["/usr/bin/curl", "https://shop.example", "--user", "shop:hunter2"]},
        {"argv": ["timeout", "9", "curl", "-sSfu", "shop:hunter2", "https://shop.example"]},
        {"argv": ["curl", "--proxy-user", "shop:hunter2", "https://shop.example"]},
        {"argv": ["redis-server", "--requirepass", "hunter2"]},
        {"content": "port 6379\nrequirepass hunter2\n"},
        {"text": '  masterauth "hunter2"\n'},
        {"line": "requirepass hunter2"},
        {"vars": {"AWS_SECRET_ACCESS_KEY": "abc"}},
        {"env": {"PGPASSWORD": "hunter2"}},
        {"env": {"MYSQL_PWD": "hunter2"}},
        {"env": {"SSHPASS": "hunter2"}},
        {"env": {"REDISCLI_AUTH": "hunter2"}},
        {"argv": ["env", "PGPASSWORD=hunter2", "psql"]},
        {"argv": ["mysql", "-u", "root", "-phunter2"]},
        {"argv": ["sudo", "/usr/bin/mysqldump", "-phunter2", "shop"]},
        {"argv": ["mariadb", "-phunter2"]},
        {"argv": ["sshpass", "-p", "hunter2", "ssh", "n1"]},
        {"argv": ["sshpass", "-phunter2", "ssh", "n1"]},
    ],
)
def test_a_secret_is_found(data: Any) -> None:
    (message,) = said(data)

    assert "written out" in message
    assert "hunter2" not in message


@pytest.mark.parametrize(
    "data",
    [
        {"argv": ["mysql", "--password", "${values.password}"]},
        {"argv": ["tool", "--token", "--verbose"]},
        {"argv": ["tool", "--token", "/etc/token"]},
        {"argv": ["tool", "--password-file", "secrets"]},
        {"argv": ["docker", "service", "create", "--secret", "site-key"]},
        {"argv": ["curl", "-H", "Authorization: Bearer ${vars.x}"]},
        {"argv": ["curl", "-u", "shop:${values.password}", "https://shop.example"]},
        {"argv": ["curl", "-u", "shop:", "https://shop.example"]},
        {"argv": ["curl", "-u", "shop", "https://shop.example:8443"]},
        {"argv": ["curl", "-u", "${vars.login}", "https://shop.example"]},
        {"argv": ["curl", "-su", "shop:$PASSWORD", "https://shop.example"]},
        {"argv": ["curl", "-ou", "https://shop.example"]},
        {"argv": ["curl", "--user-agent", "shop:hunter2"]},
        {"argv": ["docker", "run", "-u", "shop:staff", "curlimages/curl"]},
        {"argv": ["docker", "run", "--user", "shop:staff", "shop"]},
        {"argv": ["curl", "-u", 7]},
        {"argv": ["redis-server", "--requirepass", "${values.password}"]},
        {"content": "requirepass ${values.password}\nmasterauth {{ password }}\n"},
        {"content": '# requirepass foobared\nrequirepass ""\nrequirepass\n'},
        {"content": "requirepass is what redis calls it\n"},
        {"content": "password: ${values.password}\n"},
        {"content": "password = {{ password }}\n"},
        {"content": "password = \n"},
        {"content": "password: ask the administrator\n"},
        {"content": "PasswordAuthentication no\n"},
        {"content": "passwd:         files systemd\nshadow: files\npasswd: files\n"},
        {"content": "# password = hunter2\n"},
        {"content": "password-file: /etc/x\npassword_file=x\npassword = $PASSWORD\n"},
        {"content": "%wheel ALL=(ALL) NOPASSWD: ALL\n"},
        {"content": "imagePullSecrets:\n  - name: site\nsecretName: tls\ntoken = env://TOKEN\n"},
        {"content": "password requisite pam_pwquality.so\ntokens = 3\n"},
        {"env": {"PWD": "srv", "OLDPWD": "srv", "PGPASSFILE": "x", "MYSQL_PWD": "${values.x}"}},
        {"argv": ["mysql", "-p", "-P3306", "-uroot", "shop"]},
        {"argv": ["mysql", "-p${values.password}"]},
        {"argv": ["mkdir", "-parents", "mysql"]},
        {"argv": ["docker", "run", "--name", "mysql", "-p3306:3306", "image"]},
        {"argv": ["sshpass", "-e", "ssh", "-p", "2222", "n1"]},
        {"argv": ["sshpass", "-f", "/etc/password", "ssh", "n1"]},
        {"message": "password: hunter2"},
        {"stdout": "token: hunter2"},
    ],
)
def test_what_is_none_is_left_alone(data: Any) -> None:
    assert said(data) == []


@pytest.mark.parametrize(
    "data",
    [
        {"env": {"DB_PASSWORD": "hunter2"}},
        {"data": {"db": {"password": "hunter2"}}},
        {"secrets": {"name": "hunter2"}},
        {"vars": {"tokens": {"/srv/app": "hunter2"}}},
        {"spec": {"hosts": [{"labels": {"db-password": "hunter2"}}]}},
        {"spec": {"hosts": [{"vars": {"dbPassword": "hunter2"}}]}},
        {"spec": {"simulate": {"scripts": [{"argv": ["login", "--password", "hunter2"]}]}}},
        {"spec": {"simulate": {"machine": {"files": {"/k": "-----BEGIN PRIVATE KEY-----"}}}}},
    ],
)
def test_what_a_step_or_an_expression_can_use_is_judged_by_the_name_that_it_is_given(
    data: Any,
) -> None:
    (message,) = said(data)

    assert "written out" in message


@pytest.mark.parametrize(
    "data",
    [
        {"vars": {"files": {"/etc/app.token": "made", "~/.db-password": "x", "./token": "x"}}},
        {"data": {"modes": {"/etc/app.token": "0600"}}},
        {"spec": {"pools": {"token": {"size": 1, "scope": "host"}}}},
        {"spec": {"groups": {"secrets": {"roles": ["vault"], "minimum": 1}}}},
        {"spec": {"simulate": {"machine": {"files": {"/etc/app.token": "made"}}}}},
        {"spec": {"simulate": {"machines": {"*-token": {"osId": "debian"}}}}},
        {"spec": {"simulate": {"packages": {"app-secrets": {"version": "2.0"}}}}},
        {"spec": {"simulate": {"scripts": [{"effects": {"packages": {"app-secrets": "2.0"}}}]}}},
        {"spec": {"simulate": {"scripts": [{"effects": {"files": {"/etc/app.token": "made"}}}]}}},
    ],
)
def test_what_is_under_a_path_or_the_name_of_a_thing_is_not_judged_by_that(data: Any) -> None:
    assert said(data) == []


@pytest.mark.parametrize(
    ("key", "variable"),
    [
        ("db-password", "DB_PASSWORD"),
        ("app.token", "APP_TOKEN"),
        ("conf/app.token", "APP_TOKEN"),
        ("example.com/db-password", "DB_PASSWORD"),
        ("_token", "TOKEN"),
        ("2nd-token", "TOKEN"),
        ("db2-token", "DB2_TOKEN"),
        ("clé-token", "TOKEN"),
    ],
)
def test_the_variable_that_is_offered_has_a_name_that_a_shell_takes(
    key: str, variable: str
) -> None:
    (finding,) = literals.findings({key: "hunter2"})

    assert finding.hint == f"write `env://{variable}` or `file:///PATH` in its place"


def test_the_remedy_fits_the_place() -> None:
    data = {
        "env": {"DB_PASSWORD": "x"},
        "data": {"dbPassword": "x"},
        "vars": {"dbPassword": "x"},
        "line": "password=hunter2",
        "argv": ["curl", "-u", "shop:hunter2"],
        "content": "requirepass hunter2",
    }

    hints = [finding.hint for finding in literals.findings(data)]

    assert "`secretEnv: {DB_PASSWORD: env://DB_PASSWORD}`" in hints[0]
    assert "`secret-template`, with `secrets: {dbPassword: env://DB_PASSWORD}`" in hints[1]
    assert hints[2] == "write `env://DB_PASSWORD` or `file:///PATH` in its place"
    assert "use `secret-template`" in hints[3]
    assert hints[4] == (
        "write `--config -` there, and give the line `user = USER:PASSWORD` by `secretStdin`"
    )
    assert "use `secret-template`" in hints[5]
