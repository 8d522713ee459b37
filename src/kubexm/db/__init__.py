"""The database under store and queue: one file, its tables, migrations and sealed secrets."""
