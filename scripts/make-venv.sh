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

as_root() {
  if [ "$(id -u)" -eq 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    fail "$python cannot make virtual environments, and this user is neither root nor has sudo." \
      "Have an administrator run: apt-get install python3-venv"
  fi
}

# Debian ships python3 without ensurepip; its python3-venv package brings it.
install_ensurepip() {
  command -v apt-get >/dev/null ||
    fail "$python has no ensurepip: install your distribution's package for it (python3-venv, python3-pip)."
  echo "installing python3-venv (this python3 cannot make virtual environments) ..."
  as_root apt-get update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-venv
  has_ensurepip ||
    fail "$python still has no ensurepip after installing python3-venv." \
      "Name the interpreter to use: make setup PYTHON=/usr/bin/python3"
}

command -v "$python" >/dev/null || fail "$python was not found: install Python 3.11 or newer."
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
  fail "$python is $("$python" --version 2>&1), kubexm needs Python 3.11 or newer." \
    "Name another one: make setup PYTHON=python3.12"

# An environment whose interpreter is gone (a system upgrade, a moved folder) is made anew.
if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
  has_ensurepip || install_ensurepip
  "$python" -m venv --clear "$venv"
fi
