"""The tables as they are now, as a new database gets them; `tables` describes them.

A new database is the usual case where a pipeline runs for the first time. It gets its tables at
once, without the migrations that have led to them and what those need.
"""

from __future__ import annotations

RUN = 1 << 32
"""How many places there are for the records of a run, and for its log lines."""

STATEMENTS = (
    """
    CREATE TABLE alembic_version (
        version_num VARCHAR(32) NOT NULL,
        CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
    )
    """,
    """
    CREATE TABLE run (
        number INTEGER NOT NULL,
        id TEXT NOT NULL,
        name TEXT NOT NULL,
        status TEXT NOT NULL,
        direction TEXT NOT NULL,
        selected BOOLEAN NOT NULL,
        degraded BOOLEAN NOT NULL,
        message TEXT NOT NULL,
        world TEXT,
        created FLOAT NOT NULL,
        started FLOAT,
        ended FLOAT,
        PRIMARY KEY (number),
        UNIQUE (id)
    )
    """,
    "CREATE INDEX run_by_name ON run (name, number)",
    """
    CREATE TABLE document (
        run INTEGER NOT NULL,
        graph BLOB NOT NULL,
        spec BLOB NOT NULL,
        options BLOB NOT NULL,
        PRIMARY KEY (run),
        FOREIGN KEY(run) REFERENCES run (number)
    )
    """,
    """
    CREATE TABLE lock (
        name TEXT NOT NULL,
        token INTEGER NOT NULL,
        run INTEGER,
        machine TEXT NOT NULL,
        boot TEXT NOT NULL,
        pid INTEGER NOT NULL,
        pid_started INTEGER NOT NULL,
        user TEXT NOT NULL,
        host TEXT NOT NULL,
        since FLOAT NOT NULL,
        lease_until FLOAT NOT NULL,
        cancel BOOLEAN NOT NULL,
        PRIMARY KEY (name),
        FOREIGN KEY(run) REFERENCES run (number)
    )
    """,
    """
    CREATE TABLE ledger (
        name TEXT NOT NULL,
        host TEXT NOT NULL,
        resource TEXT NOT NULL,
        at FLOAT NOT NULL,
        run INTEGER NOT NULL,
        prior BLOB NOT NULL,
        PRIMARY KEY (name, host, resource),
        FOREIGN KEY(run) REFERENCES run (number)
    )
    """,
    """
    CREATE TABLE duration (
        name TEXT NOT NULL,
        node TEXT NOT NULL,
        mean FLOAT NOT NULL,
        samples INTEGER NOT NULL,
        PRIMARY KEY (name, node)
    )
    """,
    """
    CREATE TABLE record (
        place INTEGER NOT NULL,
        token BIGINT NOT NULL,
        body BLOB NOT NULL,
        PRIMARY KEY (place)
    )
    """,
    """
    CREATE TABLE log_line (
        place INTEGER NOT NULL,
        body BLOB NOT NULL,
        PRIMARY KEY (place)
    )
    """,
    """
    CREATE TABLE host_facts (
        name TEXT NOT NULL,
        host TEXT NOT NULL,
        at FLOAT NOT NULL,
        facts BLOB NOT NULL,
        PRIMARY KEY (name, host)
    )
    """,
)
"""What a migration that ends here has made, in this order."""
