# Every target prepares what it needs itself, from a machine with python3 and make on.
# `make` alone lists them.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules --no-print-directory
# Tests start kubexm hundreds of times; it is compiled once.
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
# Test processes side by side; more than there are cores only makes them wait for each other.
WORKERS ?= 2
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input --quiet
# Where real programs are unpacked: a registry, a container runtime, and those whose files we write.
TOOLS := build/tools
PYTEST := PATH="$$PATH:$(CURDIR)/$(TOOLS)/usr/bin:$(CURDIR)/$(TOOLS)/usr/sbin" $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup
LAB := $(BIN)/python -m lab
SOURCES := src tests lab scripts bench examples
# REQUIRE_ALL=1 fails where a test would leave itself out because something can't be had here.
export REQUIRE_ALL

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(READY) ## make .venv with kubexm and the locked tools in it
	@echo "ready: $(BIN)/kubexm"

# The stamp is newer than all it was made from, so a second set-up costs nothing.
$(READY): pyproject.toml requirements/dev.txt scripts/make-venv.sh
	@bash scripts/make-venv.sh $(PYTHON) $(VENV)
	@echo "installing the locked packages into $(VENV) ..."
	@$(PIP) install --no-warn-conflicts --require-hashes --requirement requirements/dev.txt
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

.PHONY: quickstart
quickstart: $(READY) ## a first cluster: real if this machine can boot hosts (root, Go), else simulated
	@$(LAB) quickstart

.PHONY: demo
demo: $(READY) ## the same cluster on simulated hosts, at once
	@$(LAB) quickstart --simulate

.PHONY: quickstart-down
quickstart-down: $(READY) ## take away what these two have made
	@$(LAB) quickstart --down

# Some tests watch real processes and ask a real web server, as steps do on a host.
.PHONY: test-tools
test-tools:
	@type curl pgrep openssl zstd >/dev/null 2>&1 || \
	  bash scripts/apt-install.sh "the tests run curl, pgrep, openssl and zstd" curl procps openssl zstd
	@[ "$$(id -u)" -ne 0 ] || type sudo >/dev/null 2>&1 || \
	  bash scripts/apt-install.sh "root lets a user of its own test sudo" sudo
	@[ "$$(id -u)" -ne 0 ] || type dnf zypper rpmbuild createrepo_c iptables nft >/dev/null 2>&1 || \
	  bash scripts/apt-install.sh "root tests package tools and firewalls in places apart" \
	    dnf zypper rpm createrepo-c iptables nftables
	@$(call unpacked,docker-registry,docker-registry)
	@$(call unpacked,containerd,containerd)
	@$(call unpacked,haproxy,haproxy)
	@$(call unpacked,nginx,nginx libnginx-mod-stream)
	@$(call unpacked,keepalived,keepalived)
	@$(call unpacked,chronyd,chrony)

# The packages of a program, unless it is there.
unpacked = type $(1) >/dev/null 2>&1 || [ -x $(TOOLS)/usr/bin/$(1) ] || [ -x $(TOOLS)/usr/sbin/$(1) ] || \
	for package in $(2); do bash scripts/unpack-package.sh $$package $(TOOLS); done

.PHONY: test
test: lint test-tools ## everything that needs no lab: lint and all tests (under ten minutes)
	$(PYTEST) -m "not lab"

.PHONY: check
check: lint test-tools ## what to run before every commit: lint and the fast tests (under two minutes)
	HYPOTHESIS_PROFILE=quick $(PYTEST) -m "not slow and not lab"

# Real hosts on this machine: they need root. `python -m lab --help` can do more.
N ?= 3

.PHONY: lab-tools
lab-tools: $(READY)
	@type debootstrap systemd-nspawn ip iptables ssh ssh-keygen nsenter mkfs.ext4 >/dev/null 2>&1 || \
	  bash scripts/apt-install.sh "the lab boots real hosts" debootstrap systemd-container \
	    iproute2 iptables openssh-client util-linux e2fsprogs

.PHONY: lab-up
lab-up: lab-tools ## boot N real Debian hosts (N=5; OPTIONS="--trixie 1 --special gate hidden")
	$(LAB) up --hosts $(N) $(OPTIONS)

.PHONY: lab-down
lab-down: $(READY) ## take the lab down; nothing of it stays
	$(LAB) down

.PHONY: lab-status
lab-status: $(READY) ## the hosts of the lab and how they are
	$(LAB) status

.PHONY: lab-shell
lab-shell: $(READY) ## a shell in the lab's network, or on a host of it (HOST=node1)
	@$(LAB) shell $(HOST)

# One process: all its tests stand on the same hosts, and break them. Ten more hosts at the same
# time are more than a usual kernel lets watch files.
FLEET := tests/lab/test_fleet.py
CLUSTERS := $(addprefix tests/lab/,test_real_quickstart.py test_clusters.py test_cluster_trouble.py \
  test_cluster_failures.py test_ha_clusters.py)

# They ask every kubeadm, kubectl and containerd that was made whether they read what we write.
READERS := tests/templates/test_kubeadm.py tests/templates/test_programs.py tests/document/test_foreign.py

# KUBERNETES=v1.35 makes clusters of another version than the newest. KUBEXM_LAB_UPSTREAM=1 has what
# they are made of fetched from the sites of its projects, here and wherever else a cluster is made.
export KUBERNETES KUBEXM_LAB_UPSTREAM

.PHONY: test-lab
test-lab: lab-tools test-tools ## all tests that need the lab, which comes and goes with them (root, minutes)
	$(LAB) images
	$(LAB) software $(if $(KUBERNETES),--kubernetes $(KUBERNETES)) || [ $$? -eq 2 -a -z "$(REQUIRE_ALL)" ]
	$(PYTEST) $(READERS)
	$(BIN)/python -m pytest -n 0 -m lab --ignore $(FLEET) $(addprefix --ignore ,$(CLUSTERS))
	$(BIN)/python -m pytest -n 0 -m lab $(FLEET)
	$(BIN)/python -m pytest -n 0 -m lab $(CLUSTERS)

.PHONY: lint
lint: $(READY) ## format check, ruff, mypy --strict, import contracts
	$(BIN)/ruff format --quiet --check $(SOURCES)
	$(BIN)/ruff check --quiet $(SOURCES)
	$(BIN)/mypy $(SOURCES)
	$(BIN)/lint-imports

.PHONY: format
format: $(READY) ## put the sources into the one format, with sorted imports
	$(BIN)/ruff check --quiet --select I --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

.PHONY: mutants
mutants: $(READY) ## play every plan with one mistake, to see whether simulated hosts notice (an hour)
	$(BIN)/python -m tests.mutation --jobs $(WORKERS)

.PHONY: bench
bench: $(READY) ## the engine's speed and memory, beside its limits (SECTIONS="cost chain" for some)
	$(BIN)/python bench/engine.py $(SECTIONS)

.PHONY: bench-ssh
bench-ssh: lab-tools ## work by SSH beside Ansible and pyinfra (root; SECTIONS="w1 crowd" for some)
	$(BIN)/python bench/ssh.py $(SECTIONS)

.PHONY: bench-create
bench-create: lab-tools ## real clusters beside a script with ssh and kubeadm (root; SECTIONS="1+2")
	$(LAB) images
	$(BIN)/python bench/create.py $(SECTIONS)

.PHONY: docs-reference
docs-reference: $(READY) ## write the generated pages of docs/reference again
	$(BIN)/python -m kubexm.spec.reference docs/reference
	$(BIN)/python -m kubexm.config.reference docs/reference
	$(BIN)/python -m kubexm.cli.reference docs/reference

# One file for every Python of the list: their compiled modules lie side by side, told apart by
# name. It stays bound to Linux with glibc and to the architecture of the machine that made it.
DIST_PYTHONS := 3.11 3.12 3.13 3.14
DIST_PLATFORMS := $(foreach glibc,2_17 2_28 2_34,--platform manylinux_$(glibc)_$(shell uname -m))
export SOURCE_DATE_EPOCH ?= 1577836800

.PHONY: dist
dist: $(READY) ## wheel, sdist and dist/kubexm.pyz, one file that runs where there is no pip
	rm -rf build/pyz dist
	$(BIN)/python -m build --no-isolation --outdir dist .
	for version in $(DIST_PYTHONS); do \
	  $(PIP) install --no-compile --target build/pyz/$$version --only-binary :all: \
	    --implementation cp --python-version $$version $(DIST_PLATFORMS) \
	    --require-hashes --requirement requirements/runtime.txt; \
	  rm -r build/pyz/$$version/bin; \
	  cp -rT build/pyz/$$version build/pyz/all; \
	done
	$(BIN)/python -m zipfile --extract dist/kubexm-*.whl build/pyz/all
	$(BIN)/shiv --reproducible --site-packages build/pyz/all --console-script kubexm \
	  --preamble scripts/pyz_preamble.py --root '~/.cache/kubexm/pyz' --output-file dist/kubexm.pyz
	@ls -l dist

.PHONY: lock
lock: $(READY) ## pin the dependencies of pyproject.toml (UPGRADE=--upgrade for the newest)
	@$(BIN)/python -m venv build/lock
	@build/lock/bin/python -m pip --disable-pip-version-check --quiet install 'uv>=0.5'
	$(COMPILE) --output-file requirements/runtime.txt
	$(COMPILE) --group dev --constraint requirements/runtime.txt --output-file requirements/dev.txt

# Universal and hashed: one file for every supported Python, from whatever index the user has.
COMPILE = build/lock/bin/uv pip compile --quiet pyproject.toml --universal --python-version 3.11 \
	--generate-hashes --no-emit-index-url --no-annotate --custom-compile-command 'make lock' $(UPGRADE)

.PHONY: clean
clean: ## remove all that these targets made
	@for lab in .lab .lab-bench .lab-clusters .lab-fleet .lab-tests /dev/shm/kubexm-bench; do [ ! -e $$lab ] || $(PYTHON) -m lab --path $$lab down; done
	rm -rf $(VENV) build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	find src tests lab -name __pycache__ -type d -prune -exec rm -rf {} +
