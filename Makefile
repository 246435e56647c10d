# `make` alone lists what there is.

.DEFAULT_GOAL := help
SHELL := /bin/bash

BIN     := bin/mimikit
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X main.version=$(VERSION)

# The race detector needs a C compiler; without one the tests still run.
RACE := $(shell [ "$$(go env CGO_ENABLED 2>/dev/null)" = 1 ] && command -v "$$(go env CC)" >/dev/null 2>&1 && echo -race)

# SEED repeats a chaos run: make chaos SEED=7
SEED ?=

.PHONY: help run test bench chaos lint build need-go

run: build ## build, and talk to the bot in this terminal
	@./$(BIN) chat

test: need-go ## run all tests, with the race detector, on a real redis-server too
	@.ci/need
	@[ -n "$(RACE)" ] || echo "note: no C compiler, so the race detector is off" >&2
	go test $(RACE) -timeout 30m ./...
	cd deploy/check && go test ./...

bench: build ## measure: the Go benchmarks, then the pipeline next to a bare one
	@.ci/need
	go test -run '^$$' -bench . ./...
	./$(BIN) bench --compare
	./$(BIN) bench tasks --compare

chaos: build ## kill, pause and cut off nodes and Redis; check that nothing is lost or doubled
	@.ci/need
	./$(BIN) chaos --nodes 3 --messages 5000 --conversations 200 --lease 1s $(if $(SEED),--seed $(SEED))
	./$(BIN) chaos tasks $(if $(SEED),--seed $(SEED))

lint: need-go ## golangci-lint at the version of tools/go.mod (the first build takes minutes)
	go tool -modfile=tools/go.mod golangci-lint run
	cd deploy/check && go tool -modfile=../../tools/go.mod golangci-lint run -c ../../.golangci.yml

build: need-go ## build bin/mimikit, one static binary
	@mkdir -p bin
	CGO_ENABLED=0 go build -trimpath -ldflags "$(LDFLAGS)" -o $(BIN) ./cmd/mimikit

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

need-go:
	@command -v go >/dev/null || { echo "Go 1.26 or newer is needed: https://go.dev/dl/" >&2; exit 1; }
