"""A host whose clock is wrong, as far as those who log in see it.

The machine has one clock for all hosts. `libfaketime` shows another to programs that are started
over ssh or sudo and linked dynamically; services and static programs see the true one. Preloading
it for everything by /etc/ld.so.preload was tried: sshd does not survive that.
"""

from __future__ import annotations

import os

from lab.site import Home

_LIBRARY = "/usr/lib/{machine}-linux-gnu/faketime/libfaketime.so.1"


def skew(home: Home, seconds: int) -> None:
    """Show this many seconds more than there are, or the true time if 0."""
    library = _LIBRARY.format(machine=os.uname().machine)
    lines = f"LD_PRELOAD={library}\nFAKETIME={seconds:+d}s\nFAKETIME_DONT_FAKE_MONOTONIC=1\n"
    # What PAM puts into the environment of a login.
    (home.root / "etc/environment").write_text(lines if seconds else "")
    rule = home.root / "etc/sudoers.d/lab-clock"
    rule.unlink(missing_ok=True)
    if seconds:
        # sudo drops what a user has in the environment, and takes what this file says.
        rule.write_text("Defaults env_file=/etc/environment\n")
        rule.chmod(0o440)
