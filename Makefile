# percept: `make` lists what there is. Each target does its own set-up, and does it only once.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup build models demo test lab check audit cross bench bench-recall golden install uninstall deb clean

# Where model files are looked for before the network is asked.
ifneq ($(wildcard ../shared/models),)
PERCEPT_MODEL_MIRROR ?= $(abspath ../shared/models)
endif
export PERCEPT_MODEL_MIRROR
# Real sounds, photographs and receiver logs out of Debian packages.
export PERCEPT_DEMO_MEDIA ?= $(CURDIR)/var/demo/media
# What networkx says, for the test that compares.
export PERCEPT_PEER_PAGERANK ?= $(CURDIR)/var/peers/pagerank.jsonl
# rustup puts cargo there; a fresh login shell would have it on its path.
export PATH := $(HOME)/.cargo/bin:$(PATH)

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## install what is missing to build and test (Debian packages, Rust)
	@scripts/setup.sh build demo bench

build:
	@scripts/setup.sh build
	cargo build --locked

models: build
	@scripts/setup.sh models

demo: models ## build, fetch models, replay a recorded session, show the timeline
	@scripts/setup.sh demo
	@scripts/demo.sh

test: models ## the same set-up, then every test
	@scripts/setup.sh demo peers
	@scripts/test.sh

lab: models ## live sensors without hardware: PulseAudio, gpsd, a mocked BlueZ, a virtual machine with cameras
	@scripts/setup.sh demo
	@tests/lab/run.sh

check: ## formatting, clippy and documentation with warnings fatal, architecture test
	@scripts/setup.sh build
	cargo fmt --check
	cargo clippy --locked --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings -A rustdoc::private_intra_doc_links" cargo doc --locked --no-deps --document-private-items
	cargo test --locked --test it architecture::

audit: ## licences, bans, sources and advisories of every dependency (cargo-deny)
	@scripts/setup.sh audit
	@scripts/audit.sh

cross: ## build for 64-bit ARM, replay the demo under qemu, compare the classes
	@scripts/cross.sh build
	@$(MAKE) --no-print-directory models
	@scripts/setup.sh demo
	@scripts/cross.sh compare

bench: models ## measure beside the Python peers, print ratios
	@scripts/setup.sh demo bench
	@scripts/bench.sh

bench-recall: build ## multi-hop recall on a question set (PERCEPT_MULTIHOP_DATA), one line per method
	@scripts/bench_recall.sh

golden: models ## rewrite the expected timelines under tests/golden
	@scripts/setup.sh demo
	PERCEPT_GOLDEN=rewrite scripts/test.sh golden

install: ## install the release build as a service (PREFIX, DESTDIR)
	@scripts/install.sh

uninstall: ## remove it; PURGE=1 removes settings and memories too
	@scripts/uninstall.sh

deb: ## Debian packages for amd64 and arm64
	@scripts/deb.sh

clean: ## remove everything built, fetched and made
	cargo clean
	rm -rf var
