"""The tables as they are now; how they came to be is in `migrations`.

Times are seconds since the epoch. What is read often and what is large lie apart: the summary
of a run is updated in place, its documents are written once and its records only appended.
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
)

metadata = MetaData()

run = Table(
    "run",
    metadata,
    Column("number", Integer, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("direction", Text, nullable=False),
    Column("selected", Boolean, nullable=False),
    Column("degraded", Boolean, nullable=False),
    Column("message", Text, nullable=False),
    Column("world", Text),
    Column("created", Float, nullable=False),
    Column("started", Float),
    Column("ended", Float),
    Index("run_by_name", "name", "number"),
)

document = Table(
    "document",
    metadata,
    Column("run", Integer, ForeignKey(run.c.number), primary_key=True),
    Column("graph", LargeBinary, nullable=False),
    Column("spec", LargeBinary, nullable=False),
    Column("options", LargeBinary, nullable=False),
)

# A row stays when its lock is released, so that tokens of a name only ever grow.
lock = Table(
    "lock",
    metadata,
    Column("name", Text, primary_key=True),
    Column("token", Integer, nullable=False),
    Column("run", Integer, ForeignKey(run.c.number)),
    Column("machine", Text, nullable=False),
    Column("boot", Text, nullable=False),
    Column("pid", Integer, nullable=False),
    Column("pid_started", Integer, nullable=False),
    Column("user", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("since", Float, nullable=False),
    Column("lease_until", Float, nullable=False),
    Column("cancel", Boolean, nullable=False),
)

# `place` is the number of the run times RUN, and the number inside the run. A table by one number
# only ever grows at its end: a commit writes one page, where a pair of numbers costs two.
Place = BigInteger().with_variant(Integer, "sqlite")

record = Table(
    "record",
    metadata,
    Column("place", Place, primary_key=True),
    Column("token", BigInteger, nullable=False),
    Column("body", LargeBinary, nullable=False),
)

log_line = Table(
    "log_line",
    metadata,
    Column("place", Place, primary_key=True),
    Column("body", LargeBinary, nullable=False),
)

ledger = Table(
    "ledger",
    metadata,
    Column("name", Text, primary_key=True),
    Column("host", Text, primary_key=True),
    Column("resource", Text, primary_key=True),
    Column("at", Float, nullable=False),
    Column("run", Integer, ForeignKey(run.c.number), nullable=False),
    Column("prior", LargeBinary, nullable=False),
)

duration = Table(
    "duration",
    metadata,
    Column("name", Text, primary_key=True),
    Column("node", Text, primary_key=True),
    Column("mean", Float, nullable=False),
    Column("samples", Integer, nullable=False),
)

# What each host told of itself when a run of this name last reached it.
host_facts = Table(
    "host_facts",
    metadata,
    Column("name", Text, primary_key=True),
    Column("host", Text, primary_key=True),
    Column("at", Float, nullable=False),
    Column("facts", LargeBinary, nullable=False),
)
