#!/usr/bin/env bash
# Make (or keep) a working virtual environment: make-venv.sh PYTHON DIRECTORY
set -eu

python=$1
venv=$2

fail() {
  printf 'make setup: %s\n' "$@" >&2
  exit 1
}

has_ensurepip() {
  "$python" -c 'import ensurepip, venv' 2>/dev/null
}

command -v "$python" >/dev/null || fail "$python was not found: install Python 3.11 or newer."
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  fail "$python is $("$python" --version 2>&1), kubexm needs Python 3.11 or newer." \
    "Name another one: make setup PYTHON=python3.12"

# An environment whose interpreter is gone (a system upgrade, a moved folder) is made anew.
if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
  # Debian ships python3 without ensurepip; its python3-venv package brings it.
  has_ensurepip ||
    bash "$(dirname "$0")/apt-install.sh" "$python can't make virtual environments" python3-venv
  has_ensurepip ||
    fail "$python still has no ensurepip after installing python3-venv." \
      "Name the interpreter to use: make setup PYTHON=/usr/bin/python3"
  "$python" -m venv --clear "$venv"
fi
