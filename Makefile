# Holdfast. `make` lists what there is; everything sets itself up.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# A tag names a release; between releases, and without git, the version says so.
VERSION ?= $(shell git describe --tags --match 'v[0-9]*' --dirty 2>/dev/null || \
	echo "v0.1.0-dev$$(git rev-parse --short HEAD 2>/dev/null | sed 's/^/+/')")
TOOL := go tool -modfile=tools/go.mod
TESTFLAGS ?=
FUZZTIME ?= 10
SEEDS ?= 20000

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## build bin/holdfastd and bin/holdfast
	@mkdir -p bin
	CGO_ENABLED=0 go build -buildvcs=false -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/holdfastd ./cmd/server
	CGO_ENABLED=0 go build -buildvcs=false -trimpath -ldflags '-s -w -X main.version=$(VERSION)' -o bin/holdfast ./cmd/holdfast

.PHONY: run
run: build ## start a single node on 127.0.0.1:7620 (TCP) and :7621 (HTTP)
	@exec bin/holdfastd

.PHONY: cluster
cluster: build ## start three nodes on 127.0.0.1, native ports 7620, 7630 and 7640
	@exec tools/cluster.sh

.PHONY: generate
generate: ## write the generated files anew: templ components, docs/configuration.md
	$(TOOL) templ generate -log-level error
	go test ./cmd/server -run '^TestConfigurationPage$$' -rewrite

.PHONY: screenshots
screenshots: setup ## pictures of every page of the dashboard, light, dark and phone, in bin/screenshots
	@mkdir -p bin/screenshots
	go test ./internal/web/ui -run '^TestPages$$' -count=1 -screenshots=$(CURDIR)/bin/screenshots

.PHONY: check
check: format vet generated tidy todo vulnerabilities ## formatting, vet, staticcheck, generated files, go.mod

.PHONY: test
test: setup check ## check, every test with -race, twenty thousand simulated histories, every broken rule, ten seconds of each fuzz target
	TESTFLAGS='$(TESTFLAGS)' tools/test.sh
	go test ./internal/sim -run '^TestSimulation$$' -seeds $(SEEDS) -count=1 -v -timeout 20m
	go test ./internal/sim -tags faults -run '^TestFaults$$' -count=1 -v -timeout 20m
	FUZZTIME=$(FUZZTIME) tools/fuzz.sh

.PHONY: fuzz
fuzz: ## fuzz each target for FUZZTIME seconds (10)
	FUZZTIME=$(FUZZTIME) tools/fuzz.sh

.PHONY: bench
bench: ## run the Go benchmarks
	go test -run '^$$' -bench . -benchmem ./...

.PHONY: soak
soak: ## long runs, hours: ten million model steps, every seeded fault, 300,000 simulated histories, gaps in service, a minute of each fuzz target
	MODEL_STEPS=10000000 go test ./internal/locks -run '^TestModel$$' -count=1 -v -timeout 2h
	go test ./internal/locks -tags faults -run 'TestFaults|TestHarmless' -count=1 -v -timeout 2h
	go test ./internal/sim -run '^TestSimulation$$' -from 1000000 -seeds 300000 -count=1 -v -timeout 3h
	go test ./internal/e2e/cluster -run '^TestGap' -rounds 50 -strict -count=1 -v -timeout 1h
	FUZZTIME=60 tools/fuzz.sh

.PHONY: clean
clean: ## remove what was built
	rm -rf bin

# The steps of check, each on its own.

.PHONY: setup format vet generated tidy todo vulnerabilities
setup:
	@tools/setup.sh

format:
	@unformatted=$$(gofmt -l .); \
	if [[ -n $$unformatted ]]; then echo "not gofmt-ed:"; echo "$$unformatted"; exit 1; fi

vet:
	go vet ./...
	$(TOOL) staticcheck ./...

# Compares before and after instead of asking git, so that it works on a tree with changes in it.
generated:
	@sums() { find . -name '*_templ.go' -exec cksum {} + | sort; }; \
	before=$$(sums); $(TOOL) templ generate -log-level error; \
	if [[ $$before != "$$(sums)" ]]; then echo "templ components were out of date: run make generate and commit"; exit 1; fi

tidy:
	go mod tidy -diff
	go -C tools mod tidy -diff

# The pattern is split so as not to find itself.
todo:
	@if grep -rnIwE 'TO''DO|FIX''ME|X''XX' --exclude-dir=.git --exclude-dir=bin --exclude=go.sum .; then \
		echo "finish it or file it: no such notes in the tree"; exit 1; fi

# A report, not a gate: its database is on the network, and a new entry there must not break an old commit.
vulnerabilities:
	@timeout 120 $(TOOL) govulncheck ./... || echo "govulncheck: findings above, or its database is out of reach; not a failure"
