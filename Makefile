# make agents  every shipped agent on the scripted model, OpenHands among them (0.6 GB, Python 3.12)
# make demo    set up, accept the core tasks, grade golden, base, hollow and every adversarial patch, check the verdicts
# make test    set up, check, run every test
# make check   formatting, lints, schemas, docs, licences
# make bench   figures as ratios; one part alone: make bench BENCH=overhead
# make upstream MEGATRON=path/of/a/clone   tasks of Megatron-LM's own pull requests: minutes; 3 GB of packages once
# make hollow-survey MEGATRON=a/clone VERL=a/clone [PYTHON=a/python/with/torch]   hollow files and mutants of 300 pull requests
# make curation MEGATRON=a/clone VERL=a/clone TORCHTITAN=a/clone   what curate reads of real histories, against fixtures/curation/labels.jsonl
# make kill-test   kill -9 at 50 instants of one acceptance of the core pack, resuming after each
# make docs    the book, into docs/book (needs mdbook)
# make install the program, into ~/.cargo/bin
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DEFAULT_GOAL := help
.PHONY: agents upstream hollow-survey curation help setup demo test test-rust test-python kill-test check bench docs install

IN := source tools/env.sh

help:
	@sed -n 's/^# make/make/p' Makefile

setup:
	@tools/setup.sh

demo:
	@tools/setup.sh
	$(IN)
	cargo build --release --package infradev-cli
	python3 tools/demo.py --infradev target/release/infradev

test: check test-rust test-python

test-rust:
	@tools/setup.sh agents
	$(IN)
	if cargo nextest --version >/dev/null 2>&1; then
	    cargo nextest run --workspace --no-fail-fast
	else
	    cargo test --workspace --no-fail-fast
	fi

test-python:
	@tools/setup.sh tests
	$(IN)
	.tools/kit-tests/bin/python -m pytest -q -p no:cacheprovider -o asyncio_default_fixture_loop_scope=function python/tests

agents:
	@tools/setup.sh agents
	$(IN)
	INFRADEV_OPENHANDS=1 cargo test --package infradev-cli --test agents

kill-test:
	@tools/setup.sh
	$(IN)
	INFRADEV_KILL_PACK=packs/core INFRADEV_KILLS=50 \
	    cargo test --package infradev-cli --test kill -- --nocapture

check:
	@tools/setup.sh check
	$(IN)
	cargo fmt --all -- --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	cargo test --quiet --package infradev-model --test schemas
	python3 tools/house.py
	python3 tools/licences.py
	if command -v cargo-deny >/dev/null; then cargo deny --offline check bans licenses sources; fi

bench:
	@tools/setup.sh
	$(IN)
	cargo build --release --quiet --package infradev-cli
	python3 benches/bench.py --infradev target/release/infradev $(BENCH)

upstream:
	@tools/setup.sh
	$(IN)
	test -n "$(MEGATRON)" || { echo "say where a clone of Megatron-LM is: make upstream MEGATRON=../Megatron-LM" >&2; exit 2; }
	INFRADEV_MEGATRON="$(abspath $(MEGATRON))" cargo test --package infradev-cli --test upstream -- --nocapture --test-threads=1

hollow-survey:
	@tools/setup.sh
	$(IN)
	test -n "$(MEGATRON)$(VERL)" || { echo "say where a clone is: make hollow-survey MEGATRON=../Megatron-LM VERL=../verl" >&2; exit 2; }
	export INFRADEV_MEGATRON="$(abspath $(MEGATRON))" INFRADEV_VERL="$(abspath $(VERL))"
	if [ -n "$(PYTHON)" ]; then export INFRADEV_SURVEY_PYTHON="$(abspath $(PYTHON))"; fi
	cargo test --package infradev-cli --test hollow_survey -- --nocapture --test-threads=1

curation:
	@tools/setup.sh
	$(IN)
	test -n "$(MEGATRON)$(VERL)$(TORCHTITAN)" || { echo "say where a clone is: make curation MEGATRON=../Megatron-LM VERL=../verl TORCHTITAN=../torchtitan" >&2; exit 2; }
	if [ -n "$(MEGATRON)" ]; then export INFRADEV_MEGATRON="$(abspath $(MEGATRON))"; fi
	if [ -n "$(VERL)" ]; then export INFRADEV_VERL="$(abspath $(VERL))"; fi
	if [ -n "$(TORCHTITAN)" ]; then export INFRADEV_TORCHTITAN="$(abspath $(TORCHTITAN))"; fi
	cargo build --release --quiet --package infradev-cli
	python3 benches/bench.py --infradev target/release/infradev curation

docs:
	mdbook build docs

install:
	@tools/setup.sh
	$(IN)
	cargo install --path crates/cli --locked
