# Every target calls one script, and every script does what it says here on a fresh machine with a Rust
# toolchain: what is lacking is installed first (scripts/setup.sh). CI runs the same targets (.ci/run).

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup run test lint fmt bench sim crash chaos rolling ssrf power-loss store-conformance store-histories fuzz fuzz-api vendors clients canary image deploy-test

KILLS ?= 300
MINUTES ?= 30
ROUNDS ?= 5
CUTS ?= 1000
SEEDS ?= 10000
HISTORIES ?= 10000

help: ## List the targets
	@echo "Ostler. Start with: make run"
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## Build, start, apply an example, run it, stay up (ONCE=1 ends after the result; PORT=7070)
	@scripts/run.sh

test: ## Run every test, with the testing ground in CI size
	@scripts/test.sh

lint: ## Check format, lints, arrows between crates, scripts
	@scripts/lint.sh

fmt: ## Format the code
	@scripts/setup.sh && cargo fmt --all

bench: ## Measure, beside the floors of this machine (ARGS="...")
	@scripts/bench.sh $(ARGS)

sim: ## Play SEEDS=10000 seeds of the simulation; SEED=17 plays one and prints its log
	@scripts/ground.sh sim $(if $(SEED),--seed $(SEED) --log,--seeds $(SEEDS))

crash: ## Kill the server KILLS=300 times while tasks run (STORE=postgres: on PostgreSQL)
	@scripts/ground.sh crash --kills $(KILLS) $(if $(filter postgres,$(STORE)),--postgres)

chaos: ## Do everything to servers, workers and their database for MINUTES=30 while tasks run (SEED=7 repeats the choices)
	@scripts/ground.sh chaos --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

rolling: ## Restart servers and workers in turn, ROUNDS=5 times, while clients and readers must not notice
	@scripts/ground.sh chaos --rolling $(ROUNDS)

canary: ## Use a secret of each kind, and look for it wherever it might have been left
	@scripts/canary.sh

power-loss: ## Rebuild the store from CUTS=1000 cut points
	@scripts/ground.sh power-loss --cuts $(CUTS)

ssrf: ## Try every address trick on models, tools and redirects, in network namespaces without a way out
	@scripts/ground.sh ssrf

store-conformance: ## Try what every store promises on each of them, several servers on one store, planted bugs
	@scripts/conformance.sh

store-histories: ## Compare the stores with the reference on HISTORIES=10000 random histories; SEED=7 only that one
	@HISTORIES=$(HISTORIES) $(if $(SEED),SEED=$(SEED)) scripts/histories.sh

fuzz: ## Give the manifest reader anything for MINUTES=30
	@MINUTES=$(MINUTES) scripts/fuzz.sh

fuzz-api: ## Send made-up requests to every route of the description (EXAMPLES=20 each, SEED=1)
	@scripts/fuzz-api.sh

vendors: ## Run the vendors' own SDKs against the scripted model server (CASES="gemini cut")
	@scripts/vendors.sh

clients: ## Run other systems' SDKs against the real server
	@scripts/clients.sh

image: ## Build the container image (IMAGE=name, BINARY=program, ARCHIVE=file)
	@deploy/image.sh

deploy-test: ## Try the image with podman and the units under a real systemd (BINARY=program)
	@deploy/test.sh

setup: ## Install what the other targets need
	@scripts/setup.sh databases networks clocks python
