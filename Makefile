# make           builds, checks and tests
# make demo      two real clusters, a server and two agents; Ctrl-C ends it
# make test      all tests, with what they need
# make prometheus   builds the Prometheus that tests run
# make convergence SEEDS=50   breaks everything at random, and compares
# make hostile DURATION=10m  attacks every entry point of docs/security.md at once
# make move FREEZE=1m  moves accounts from an existing Clouddriver to agents and back while everything fails
# make differential SEEDS=500   applies random manifests by kubectl and by us, and compares
# make verify-clouddriver RECORDING=DIR   compares our answers with a real Clouddriver's
# make verify-spinnaker RECORDINGS=DIR     replays what Orca, Gate and Fiat sent
# make verify-beside SPINNAKER=DIR         moves accounts from a real Clouddriver to agents and back
# make verify-deck SPINNAKER=DIR DECK=DIR   shows Deck in a browser while an account moves
# make bench     measures, and writes docs/performance.md
# make bench-ops measures what operations cost alone, and writes that
# make bench-api measures Clouddriver's list endpoints on three databases, for about an hour

SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := all

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
# grpcnotrace keeps golang.org/x/net/trace out, which would keep the linker from
# dropping what is never called.
TAGS := grpcnotrace,disable_grpc_modules
LDFLAGS := -s -w -X github.com/vedette-io/vedette/internal/version.version=$(VERSION)
export CGO_ENABLED ?= 0
LINT := go tool -modfile=tools/golangci-lint.mod golangci-lint

.PHONY: all build demo test test-race test-databases test-vault controlplane prometheus convergence hostile move differential verify-clouddriver verify-spinnaker verify-beside verify-deck lint fmt generate verify-generate bench bench-ops bench-api clean

all: build lint test

build:
	@mkdir -p bin
	go build -trimpath -tags $(TAGS) -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...

# On a terminal the demo is a job of its own (set -m), so that Ctrl-C ends the demo only:
# make would otherwise end by the signal too. The colon keeps bash from replacing itself by
# the demo. `go run` is not used, because it ends with 1 when it is interrupted. A signal that only make
# gets does not reach the demo, so it watches make, whose process id is PPID.
demo: build
	@go build -tags $(TAGS) -o bin/demo ./test/demo
	@if [ -t 0 ]; then set -m; fi; bin/demo --starter $$PPID $(if $(CHECK),--check); :

# Programs of the control planes that tests and the demo run: some ten minutes
# once, then from the cache.
controlplane:
	go run ./test/controlplane/cmd/controlplane build

# The Prometheus that tests of metrics run: some minutes once, then from the cache.
prometheus:
	@go run ./test/prometheus/cmd/build

# PostgreSQL and MariaDB as servers that tests can start. docs/development.md says how
# to test on others.
test-databases:
	scripts/test-databases.sh

# The Vault that the tests of secret engines start: some minutes once, then from the cache.
test-vault:
	@scripts/test-vault.sh >/dev/null

# checkptr, which comes with -race, makes compression fifty times slower: zstd reads
# words through unsafe. The detector makes SQLite four times slower, which is translated
# from C and uses memory of its own; its driver is still checked.
RACE := -race '-gcflags=github.com/klauspost/compress/...=-d=checkptr=0' \
	-gcflags=modernc.org/sqlite/lib=-race=false '-gcflags=modernc.org/libc/...=-race=false'

# The packages that take longest begin first, so that none of them is alone at the end. Many tests
# wait, so one more package than there are processors runs at a time, and twice as many tests of a
# package as there are processors.
LONGEST := ./server/store ./agent/operate ./agent/watch ./test/convergence ./server/clouddriver ./test/journey ./test/beside
PROCESSORS := $(shell getconf _NPROCESSORS_ONLN)
PACKAGES_AT_ONCE ?= $(shell expr $(PROCESSORS) + 1)
TESTS_AT_ONCE ?= $(shell expr $(PROCESSORS) '*' 2)

test: build controlplane prometheus test-databases test-vault
	CGO_ENABLED=1 go test $(RACE) -tags $(TAGS) -timeout 40m -p $(PACKAGES_AT_ONCE) -parallel $(TESTS_AT_ONCE) $(LONGEST) ./...

# Seeded faults over real processes: SEEDS of each database, from FROM on, with
# clocks that are wrong by SKEW, and OBJECTS where many are wanted.
SEEDS ?= 20
FROM ?= 1
SKEW ?= 0s
OBJECTS ?= 50000
convergence: controlplane test-databases
	go test ./test/convergence -run 'TestConvergence|TestLargeResync|TestStaleDataIsMarkedStale' -timeout 24h -seeds $(SEEDS) -from $(FROM) -skew $(SKEW) -objects $(OBJECTS) $(if $(DB),-db $(DB)) -v

# Every entry point of docs/security.md attacked at once for DURATION, beside honest agents and readers. It prints
# how long these waited, and the maximum memory of server and agents.
DURATION ?= 10m
hostile:
	go test ./test/hostile -tags $(TAGS) -run 'TestAllEntryPoints|TestEveryEntryPointIsAttacked' -timeout 24h -duration $(DURATION) -v

# Accounts move from a stand-in for Clouddriver to agents and back, while readers ask without pause and everything fails that
# can. The stand-in is frozen for FREEZE in each step; with 1m it takes some ten minutes. It prints for how long each reader
# got errors.
FREEZE ?= 1m
move: controlplane
	go test ./test/beside -tags $(TAGS) -run 'TestMove|TestBadUpstreams' -timeout 24h -freeze $(FREEZE) -v

# Random manifests through kubectl and through us: SEEDS sequences of each mode, from
# FROM on; MODE is client, server or mixed, and all of them if not given.
differential: controlplane
	go test ./test/differential -tags $(TAGS) -run Differential -timeout 24h -seeds $(SEEDS) -from $(FROM) $(if $(MODE),-mode $(MODE)) -v

# Serves recorded objects to an agent, and compares the server's answers with those that a real
# Clouddriver gave. RECORDING is a directory with objects.json and clouddriver.jsonl; without it,
# SPINNAKER_RECORDINGS counts. FORM restricts it to some paths. WRITE=docs/compatibility.md
# writes the results there.
RECORDING ?=
verify-clouddriver:
	@go run -tags $(TAGS) ./test/compatibility/cmd/verify-clouddriver --recording '$(RECORDING)' $(if $(FORM),--form '$(FORM)') $(if $(WRITE),--write $(WRITE))

# Replays what Orca, Gate and Fiat sent: Orca's calls against a real control plane. RECORDINGS is
# the directory above RECORDING.
RECORDINGS ?=
verify-spinnaker: controlplane
	@go run -tags $(TAGS) ./test/compatibility/cmd/verify-spinnaker --recordings '$(RECORDINGS)' $(if $(PART),--only '$(PART)') $(if $(WRITE),--write $(WRITE))

# The same as move with a real Clouddriver, and a comparison of what both sides answer about the same clusters. SPINNAKER is a
# directory with clouddriver.args, a Java argument file that holds "-cp CLASSPATH MAINCLASS" of a Clouddriver.
SPINNAKER ?=
verify-beside:
	@if [ ! -r '$(SPINNAKER)/clouddriver.args' ]; then printf '%s\n' \
		"verify-beside: there is no readable file '$(SPINNAKER)/clouddriver.args', which says how to start Clouddriver." \
		"Build Spinnaker's Clouddriver (https://github.com/spinnaker/clouddriver): ./gradlew clouddriver-web:installDist" \
		"Write this line into a file clouddriver.args, with LIB for the absolute path of clouddriver-web/build/install/clouddriver/lib:" \
		"  -cp LIB/* com.netflix.spinnaker.clouddriver.Main" \
		"Then run: make verify-beside SPINNAKER=DIR, where DIR is the directory of that file." \
		"redis-server and Java 17 must be on the PATH." >&2; exit 1; fi
	@$(MAKE) --no-print-directory controlplane
	go test ./test/beside -tags $(TAGS) -run 'TestSameAnswers|TestMove' -parallel 1 -timeout 24h -freeze $(FREEZE) \
		-clouddriver '$(abspath $(SPINNAKER))/clouddriver.args' -v

# Deck in a browser over Gate, Orca and a Clouddriver, before, while and after an account of that moves to an
# agent. SPINNAKER is a directory with their Java argument files, DECK one with Deck's files. What is
# missing is printed. CHROMIUM is the browser, ONLY restricts the pages, OUT is for pictures and texts.
DECK ?=
verify-deck:
	@go run -tags $(TAGS) ./test/deck --spinnaker '$(SPINNAKER)' --deck '$(DECK)' $(if $(CHROMIUM),--chromium '$(CHROMIUM)') $(if $(ONLY),--only '$(ONLY)') $(if $(OUT),--out '$(OUT)')

lint:
	$(LINT) run ./...
	$(LINT) fmt --diff ./...

fmt:
	gofmt -w .

generate:
	go generate ./...

verify-generate: generate
	git diff --exit-code

bench: controlplane test-databases
	go run ./bench --write docs/performance.md

bench-ops: controlplane
	go run ./bench --only operations --write docs/performance.md

# FLAGS=--quick measures a tenth of everything.
bench-api: test-databases
	go run ./bench --only api --json bin/bench-api.json --write docs/performance.md $(FLAGS)

clean:
	rm -rf bin
