# 'make help' lists the targets. On a fresh machine with Go and git only
# 'make run' and 'make test' do all set-up that there is.

SHELL       := /bin/bash -o pipefail
.NOTPARALLEL:
.DEFAULT_GOAL := build

# What 'make run' runs: some seconds of forwarding between in-memory ports, with
# a stall of 2 ms every half second to be found in the show at the end.
RUN         ?= --duration 8s --inject compute=2ms@500ms
# Flags for the experiments of 'make results', say --quick.
BENCH       ?=
# How long 'make fuzz' fuzzes each target, how often 'make bench' runs each benchmark.
FUZZTIME    ?= 30s
COUNT       ?= 5

# Debian packages: peers that tests talk to, and what the race detector links with.
PEERS       := openvswitch-common openvswitch-switch iproute2 tmux prometheus chromium
COMPILER    := gcc libc6-dev

# -count=1: tests of real peers and of other packages' imports depend on more
# than the test cache knows of.
TEST        := go test -count=1
# Packages with tests that have a long version (internal/need, Long).
LONG         = $(sort $(dir $(addprefix ./,$(shell grep -rl --include='*_test.go' 'need\.Long()' *))))
# Packages that run on systems other than Linux too: what an embedder imports.
PORTABLE    := ./perf/... ./histogram/... ./history/... ./export/ovs/...

# The go command stamps binaries with the commit and fails where git refuses to
# read the checkout, as in a clone that belongs to somebody else.
ifeq ($(shell git rev-parse --verify --quiet HEAD 2>/dev/null),)
export GOFLAGS := $(GOFLAGS) -buildvcs=false
endif

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

.PHONY: build
build: ## build bin/pmdperf, statically linked
	CGO_ENABLED=0 go build -o bin/pmdperf ./cmd/pmdperf

.PHONY: run
run: build ## forward packets for some seconds and show what was recorded
	bin/pmdperf run $(RUN)

.PHONY: test
test: ## run the tests, long ones in short (as root on Debian: install their peers first)
	@scripts/packages $(PEERS)
	$(TEST) ./...

.PHONY: test-long
test-long: ## run the packages that have long tests, in full length
	@scripts/packages $(PEERS)
	$(if $(LONG),PMDPERF_LONG=1 $(TEST) -timeout 15m $(LONG),@echo "no long tests")

.PHONY: race
race: ## run the tests under the race detector
	@scripts/packages $(PEERS) $(COMPILER)
	$(TEST) -race -timeout 15m ./...

.PHONY: purego
purego: ## run the recorder's tests without assembly and without cgo
	CGO_ENABLED=0 $(TEST) -tags purego ./perf/...

.PHONY: cross
cross: ## build and vet for what this machine is not
	CGO_ENABLED=0 go build ./...
	GOARCH=arm64 CGO_ENABLED=0 go build ./...
	GOARCH=arm64 CGO_ENABLED=0 go vet ./...
	CGO_ENABLED=0 go vet -tags purego ./...
	GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 go build $(PORTABLE)
	GOARCH=386 CGO_ENABLED=0 go build $(PORTABLE)

.PHONY: fuzz
fuzz: ## fuzz every target for FUZZTIME (30s)
	scripts/fuzz $(FUZZTIME)

.PHONY: bench
bench: ## measure everything that has a budget and print one table
	@mkdir -p bin
	@echo "Every benchmark runs $(COUNT) times; raw output goes to bin/bench.txt"
	@go test -run '^$$' -bench '^BenchmarkBudget$$' -count=$(COUNT) -timeout 60m ./... >bin/bench.txt || { cat bin/bench.txt; exit 1; }
	@go run ./internal/budgets <bin/bench.txt

.PHONY: confusion
confusion: ## provoke every cause of slow iterations and print what was named (root, quiet machine)
	PMDPERF_CONFUSION=1 $(TEST) -v -timeout 60m ./suspicious/cause/confusion

.PHONY: results
results: build ## run all experiments (an hour, quiet machine, root for all probes) and write docs/results.md
	@mkdir -p docs/results
	@bin/pmdperf bench overhead $(or $(BENCH),--until 0.5) --format json >bin/overhead.json && mv bin/overhead.json docs/results/
	@for e in reload profiles vhost self; do bin/pmdperf bench $$e $(BENCH) --format json >bin/$$e.json && mv bin/$$e.json docs/results/ || exit 1; done
	@bin/pmdperf bench causes --format json >bin/causes.json && mv bin/causes.json docs/results/
	@go run ./internal/results docs/results >bin/results.md && mv bin/results.md docs/results.md

.PHONY: lint
lint: ## gofmt, vet, staticcheck
	@gofmt -d . | { ! grep . ; }
	go vet ./...
	go tool staticcheck ./...

.PHONY: modules
modules: ## check go.mod and go.sum
	go mod verify
	go mod tidy -diff

.PHONY: generate
generate: ## write the generated files again
	go generate ./...

.PHONY: smoke
smoke: build ## what 'make run' does, as an ordinary user, and look at the output
	scripts/smoke bin/pmdperf run $(RUN)

# Nothing is run twice without a reason: the whole suite once plain and once
# under the race detector, in its short versions; long versions only where there
# are any; the pure Go twin only where there is one.
.PHONY: check
check: ## everything, as CI does
	$(MAKE) modules
	$(MAKE) lint
	scripts/unchanged $(MAKE) generate
	$(MAKE) cross
	$(MAKE) smoke
	$(MAKE) test
	$(MAKE) purego
	$(MAKE) race
	$(MAKE) test-long
	$(MAKE) fuzz FUZZTIME=3s

.PHONY: clean
clean: ## remove what was built
	rm -rf bin
