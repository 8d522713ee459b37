"""A database is made, recognised, brought up to date, or refused with a remedy."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

from kubexm.db import migration, schema
from kubexm.db.current import RUN
from kubexm.db.database import Database
from kubexm.db.schema import open_database
from kubexm.db.tables import metadata
from kubexm.errors import NewerSchema, StoreUnusable

OPEN = "import sys, pathlib; from kubexm.db.schema import open_database; "


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "kubexm.db"


@pytest.fixture
def database(path: Path) -> Iterator[Database]:
    with open_database(path) as database:
        yield database


def definitions(path: Path) -> set[str]:
    """The statements that made the tables, without regard to white space."""
    connection = sqlite3.connect(path)
    try:
        rows = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    finally:
        connection.close()
    return {" ".join(row[0].split()) for row in rows if "alembic_version" not in row[0]}


def edit(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


def migrate_and_fail(connection: sqlite3.Connection) -> float:
    migration.upgrade(connection)
    return 1 / 0


def test_file_and_directory_are_the_owners_alone(path: Path, database: Database) -> None:
    with database.writing():
        modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}

    assert modes == {"kubexm.db": 0o600, "kubexm.db-wal": 0o600, "kubexm.db-shm": 0o600}
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_connections_are_durable_and_check_references(database: Database) -> None:
    with database.reading() as connection:
        settings = {
            name: connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        }

    assert settings == {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "busy_timeout": 30_000,
    }


def migrated(path: Path) -> Path:
    """A database that went through all migrations."""
    with Database(path) as database, database.writing() as connection:
        migration.upgrade(connection)
    return path


def test_migrations_end_where_the_tables_are(tmp_path: Path) -> None:
    engine = create_engine(f"sqlite:///{migrated(tmp_path / 'migrated.db')}")
    with engine.connect() as connection:
        differences = compare_metadata(MigrationContext.configure(connection), metadata)
    engine.dispose()

    assert differences == []


def test_migrations_and_tables_and_new_databases_have_the_same_statements(
    path: Path, database: Database, tmp_path: Path
) -> None:
    # What a comparison by reflection does not see: tables without a row id.
    engine = create_engine(f"sqlite:///{tmp_path / 'made.db'}")
    metadata.create_all(engine)
    engine.dispose()

    made = definitions(tmp_path / "made.db")
    assert made == definitions(path)
    assert made == definitions(migrated(tmp_path / "migrated.db"))


def test_a_new_database_is_known_for_what_a_migrated_one_is(
    path: Path, database: Database, tmp_path: Path
) -> None:
    known = []
    for each in (path, migrated(tmp_path / "migrated.db")):
        with Database(each) as opened, opened.reading() as connection:
            id = connection.execute("PRAGMA application_id").fetchone()[0]
            known.append((id, schema.revision(connection, each)))

    assert known == [(schema.APPLICATION_ID, schema.REVISIONS[-1])] * 2


def test_revisions_are_those_of_the_migrations() -> None:
    scripts = ScriptDirectory.from_config(migration.configuration())

    revisions = [script.revision for script in scripts.walk_revisions()]

    assert tuple(reversed(revisions)) == schema.REVISIONS


def test_what_an_interrupted_migration_did_is_gone(path: Path, database: Database) -> None:
    other = path.with_name("other.db")
    with Database(other) as empty:
        with pytest.raises(ZeroDivisionError), empty.writing() as connection:
            migrate_and_fail(connection)

        assert definitions(other) == set()

    with open_database(other):
        assert definitions(other) == definitions(path)


@pytest.mark.parametrize("name", ["kubexm.db", "new.db"])
def test_what_needs_no_migration_loads_none(path: Path, database: Database, name: str) -> None:
    code = OPEN + (
        "open_database(pathlib.Path(sys.argv[1]));"
        "print(sys.modules.keys() & {'alembic', 'sqlalchemy'})"
    )

    done = subprocess.run(
        [sys.executable, "-c", code, path.with_name(name)],
        capture_output=True,
        text=True,
        check=True,
    )

    assert done.stdout.strip() == "set()"


def test_processes_that_make_the_database_at_once_do_not_disturb_each_other(path: Path) -> None:
    # All import first, and go when the one pipe they all read from is closed.
    code = OPEN + (
        "import kubexm.db.migration; print('ready', flush=True); sys.stdin.read();"
        "open_database(pathlib.Path(sys.argv[1])); print('made')"
    )
    starting_line, gate = os.pipe()
    makers = [
        subprocess.Popen(
            [sys.executable, "-c", code, path],
            stdin=starting_line,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for _ in range(3)
    ]
    outputs = [maker.stdout for maker in makers if maker.stdout is not None]
    ready = [output.readline() for output in outputs]
    os.close(starting_line)
    os.close(gate)
    made = [output.read() for output in outputs]

    assert ready == ["ready\n"] * 3
    assert made == ["made\n"] * 3
    for maker in makers:
        with maker:
            assert maker.wait() == 0


def test_newer_schema_is_refused_with_both_revisions(path: Path, database: Database) -> None:
    edit(path, "UPDATE alembic_version SET version_num = '9999'")

    with pytest.raises(NewerSchema) as refused:
        open_database(path)

    assert "`9999`" in str(refused.value)
    assert f"`{schema.REVISIONS[-1]}`" in str(refused.value)
    assert str(path) in str(refused.value)
    assert "newer" in refused.value.hint


def test_database_of_another_program_is_left_alone(path: Path) -> None:
    path.parent.mkdir()
    edit(path, "CREATE TABLE theirs (a)")

    with pytest.raises(StoreUnusable, match="another program") as refused:
        open_database(path)

    assert "KUBEXM_HOME" in refused.value.hint
    assert definitions(path) == {"CREATE TABLE theirs (a)"}


def test_file_that_is_no_database_is_refused_and_left_as_it_is(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b"my diary\n" * 1000)

    with pytest.raises(StoreUnusable, match="not a database") as refused:
        open_database(path)

    assert refused.value.where == str(path)
    assert "backup" in refused.value.hint
    assert path.read_bytes() == b"my diary\n" * 1000


def test_directory_in_place_of_the_file_is_refused(path: Path) -> None:
    path.mkdir(parents=True)

    with pytest.raises(StoreUnusable, match="can't be opened"):
        open_database(path)


def test_directory_that_can_not_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(StoreUnusable, match="can't be created") as refused:
        open_database(tmp_path / "file" / "state" / "kubexm.db")

    assert refused.value.hint


def test_failed_transaction_leaves_nothing(database: Database) -> None:
    with pytest.raises(StoreUnusable, match="syntax"), database.writing() as connection:
        for statement in ("INSERT INTO duration VALUES ('demo', 'a', 1.0, 1)", "NONSENSE"):
            connection.execute(statement)

    with database.reading() as connection:
        assert connection.execute("SELECT * FROM duration").fetchall() == []


def test_reader_neither_waits_for_a_writer_nor_sees_half_of_it(database: Database) -> None:
    with database.writing() as writer:
        writer.execute("INSERT INTO duration VALUES ('demo', 'a', 1.0, 1)")
        with database.reading() as reader:
            assert reader.execute("SELECT * FROM duration").fetchall() == []


def test_lock_of_another_process_is_explained(path: Path, database: Database) -> None:
    with (
        database.writing(),
        database.twin(busy=0.01) as impatient,
        pytest.raises(StoreUnusable, match="another process keeps the database locked") as refused,
        impatient.writing(),
    ):
        pass

    assert "fuser" in refused.value.hint


def test_records_and_lines_of_the_first_schema_are_taken_along(path: Path) -> None:
    path.parent.mkdir()
    with Database(path) as old:
        with old.writing() as connection:
            migration.upgrade(connection, "0001")
        edit(
            path,
            "INSERT INTO run VALUES (7, 'r', 'd', 'Success', 'forward', 0, 0, '', NULL, 1, 1, 1)",
            "INSERT INTO record VALUES (7, 1, 3, x'01'), (7, 2, 4, x'02')",
            "INSERT INTO log_line VALUES (7, 1, x'0A')",
        )

    with open_database(path) as database, database.reading() as connection:
        records = connection.execute("SELECT * FROM record ORDER BY place").fetchall()
        lines = connection.execute("SELECT * FROM log_line").fetchall()

    first = 7 * RUN
    assert [tuple(row) for row in records] == [(first + 1, 3, b"\x01"), (first + 2, 4, b"\x02")]
    assert [tuple(row) for row in lines] == [(first + 1, b"\x0a")]
