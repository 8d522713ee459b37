"""The lock of a host that is reached by SSH: the files that `holder.py` tells of, kept by shells.

Not every command is recorded on the host, but every shell that changes it, once: whatever the
shell runs is in its process group. Before each change the shell looks whom the host obeys.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Collection, Sequence
from urllib.parse import quote

from kubexm.common.processes import Seen
from kubexm.connector import groups, holder, takeover
from kubexm.connector.base import Claim
from kubexm.connector.groups import Group
from kubexm.connector.holder import FLOCK_SECONDS
from kubexm.connector.ssh import frames
from kubexm.connector.ssh.lane import Lane
from kubexm.connector.takeover import Patience
from kubexm.errors import Refused, StepFailed, TimedOut

_LEFT = 20
# The directory, token, task, line and our file are $1 to $5. Of the holder that is found, or
# becomes it, the line is printed; 3 says that it is another one, 4 that somebody keeps the
# directory locked. Who is the holder already need not lock it. Behind the line comes what is
# recorded of lesser tokens, and in our file: it is of an earlier connection. It is read last, when
# we are the holder: who has not seen our token by then has its group recorded. What is empty was
# left by those who were done; a few of these may stay. `tee` says what is wrong with a disk, a
# shell does not.
_TAKE = f"""umask 077
look() {{
  found=
  if [ -e "$1/holder" ]; then IFS= read -r found <"$1/holder"; fi
  token=${{found%%	*}} task=${{found#*	}}
  task=${{task%%	*}}
}}
lay() {{
  [ -d "$1" ] || mkdir -p -- "$1" || exit 1
  exec 9<"$1" || exit 1
  flock -w {FLOCK_SECONDS:g} 9 || exit 4
  look "$1"
  if [ -n "$found" ]; then
    case $token in *[!0-9]* | '') echo "$found"; exit 5 ;; esac
    if [ "$token" -gt "$2" ] || {{ [ "$token" -eq "$2" ] && [ "$task" != "$3" ]; }}; then
      echo "$found"; exit 3
    fi
  fi
  if [ "$token" != "$2" ]; then
    {{ printf '%s\\n' "$4" >"$1/holder.new"; }} 2>/dev/null ||
    {{ printf '%s\\n' "$4" | tee -- "$1/holder.new" >/dev/null; }} &&
    sync -- "$1/holder.new" && mv -f -- "$1/holder.new" "$1/holder" || exit 1
    found=$4
  fi
  exec 9<&-
}}
look "$1"
if [ "$token" != "$2" ] || [ "$task" != "$3" ]; then lay "$1" "$2" "$3" "$4"; fi
printf '%s\\n' "$found"
left=
for file in "$1"/groups.*; do
  case $file in "$1/$5") ;; *".$2" | *'*') continue ;; esac
  if [ "${{file##*.}}" -gt "$2" ]; then continue; fi
  if [ -s "$file" ]; then cat -- "$file"; elif [ -e "$file" ]; then left=x$left; fi
done
[ ${{#left}} -lt {_LEFT} ] ||
find "$1" -maxdepth 1 -name 'groups.*' -empty ! -name "*.$2" -delete 2>/dev/null || :
"""
_FORGET = """
for file in "$1"/groups.*; do
  [ -e "$file" ] || continue
  [ "${file##*.}" -ge "$2" ] || rm -f -- "$file"
done
"""
_DISK = "see that its disk is neither full nor read-only, and that the user may write there"


class RemoteLock:
    """One run's right to change one host, over one connection after the other."""

    def __init__(
        self, state_dir: str, claim: Claim, host: str, patience: Patience | None = None
    ) -> None:
        """`host` is its name in the inventory, where one machine may stand under several."""
        self._claim = claim
        self._directory = f"{state_dir}/locks/{holder.name_of(claim)}"
        self._file = f"groups.{quote(host, safe='')}.{claim.token}"
        self._patience = patience or Patience()
        self._taking = asyncio.Lock()
        self._line: str | None = None

    async def ready(self, shell: Lane) -> None:
        """Return when the host is ours and this shell may change it; `Refused` if it is not."""
        if shell.is_enrolled:
            return
        async with self._taking:
            if self._line is None:
                self._line = await self._take(shell)
        task = self._claim.task
        shell.enroll(frames.enrolled(self._directory, self._line, self._file, task))

    def lose(self) -> None:
        """The connection is gone: what runs over it is for the next one to end."""
        self._line = None

    async def refusal(self, shell: Lane) -> Refused:
        """Why the host does not obey us any more."""
        (found,) = await shell.ask((_asked("cat", "--", f"{self._directory}/holder"),))
        who = holder.read(found.text, f"{self._directory}/holder") if found.ok else None
        return holder.refusal(self._claim, who, self._directory)

    @property
    def is_taken(self) -> bool:
        return self._line is not None

    async def release(self, shell: Lane) -> None:
        """Nothing of ours runs any more; the token stays as the last one seen."""
        await shell.ask((frames.emptied(f"{self._directory}/{self._file}"),))

    async def _take(self, shell: Lane) -> str:
        line, _, recorded = (await self._laid(shell)).partition("\n")
        if recorded.strip():
            found = groups.read(recorded + "\n")
            left = [group for group in found if not _is_own(group, shell)]
            await takeover.settle(left, self._patience, _Remote(shell))
            await shell.ask((self._script(_FORGET, str(self._claim.token)),))
        return line

    async def _laid(self, shell: Lane) -> str:
        """The line of the holder that we are by now, and what is recorded of earlier ones."""
        claim = self._claim
        wanted = str(claim.token), claim.task, holder.line_of(claim), self._file
        (answer,) = await shell.ask((self._script(_TAKE, *wanted),))
        if answer.ok:
            return answer.text
        if answer.exit in (3, 5):
            found = holder.read(answer.text, f"{self._directory}/holder")
            raise holder.refusal(claim, found, self._directory)
        if answer.exit == 4:
            raise TimedOut(
                f"somebody has kept `{self._directory}` locked for {FLOCK_SECONDS:g} s",
                hint=f"end or wake the process that stands still: fuser {self._directory}",
            )
        raise StepFailed(
            f"can't lock the host in `{self._directory}`: {answer.error_text}", hint=_DISK
        )

    def _script(self, script: str, *words: str) -> str:
        return frames.script(script, self._directory, *words)


class _Remote:
    """The processes of the host of a shell."""

    def __init__(self, shell: Lane) -> None:
        self._shell = shell

    async def boot(self) -> str:
        return self._shell.group[2]

    async def everyone(self) -> Sequence[Seen]:
        (answer,) = await self._shell.ask((frames.EVERYONE,))
        return [found for line in answer.text.splitlines() if (found := _seen(line)) is not None]

    def hides(self, group: Group) -> bool:
        return False

    async def signal(self, groups: Collection[Group], number: signal.Signals) -> None:
        if groups:
            name = number.name.removeprefix("SIG")
            numbers = (f"-{group.pid}" for group in groups)
            await self._shell.ask((_asked("kill", "-s", name, "--", *numbers),))


def _asked(*argv: str) -> str:
    return frames.request(argv)


def _is_own(group: Group, shell: Lane) -> bool:
    return shell.group[:2] == (str(group.pid), str(group.started))


def _seen(line: str) -> Seen | None:
    # The command's name comes second, in parentheses, and may hold anything, even a new line.
    pid, _, rest = line.partition(" ")
    fields = rest.rpartition(")")[2].split()
    if not pid.isdecimal() or len(fields) < 20:
        return None
    return Seen(int(pid), fields[0], int(fields[2]), int(fields[3]), int(fields[19]))
