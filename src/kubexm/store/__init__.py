"""The store: runs that survive anything, and the lock that keeps them apart."""

from kubexm.store.codec import StoredLine
from kubexm.store.journal import SqlJournal
from kubexm.store.lease import Lease
from kubexm.store.lock import Holder
from kubexm.store.process import Process
from kubexm.store.runs import Documents, Run
from kubexm.store.store import Store

__all__ = [
    "Documents",
    "Holder",
    "Lease",
    "Process",
    "Run",
    "SqlJournal",
    "Store",
    "StoredLine",
]
