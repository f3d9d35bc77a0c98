# make           builds, checks and tests
# make demo      two real clusters, a server and two agents; Ctrl-C ends it
# make quick     lint of what has changed, and tests that need no cluster, database or program
# make test      all tests, with what they need
# make help      shows these lines
# make prometheus   builds the Prometheus that tests run
# make convergence SEEDS=50   breaks everything at random, and compares
# make chaos TIME=20m SEED=17  lets three servers on one database, and everything else, fail while clients work, and checks what they saw; as root
# make hostile DURATION=10m  attacks every entry point of docs/security.md at once
# make move FREEZE=1m  moves accounts from an existing Clouddriver to agents and back while everything fails
# make differential SEEDS=500   applies random manifests by kubectl and by us, and compares
# make verify-clouddriver RECORDING=DIR   compares our answers with a real Clouddriver's
# make verify-spinnaker RECORDINGS=DIR     replays what Orca, Gate and Fiat sent
# make verify-beside SPINNAKER=DIR         moves accounts from a real Clouddriver to agents and back
# make verify-deck SPINNAKER=DIR DECK=DIR   shows Deck in a browser while an account moves
# make chart     tests the Helm chart, with an API server
# make upgrade   runs the version before and this one together
# make shards    runs the store's suite on several databases of servers
# make replication  tests databases of several machines: Galera, Patroni, PgBouncer, HAProxy; as root
# make kubernetes-versions   tests against each Kubernetes that can be built
# make terraform   tests the module for Terraform, with OpenTofu
# make rbac      proves that the printed rules are sufficient, and that without each of them something breaks
# make chart-node  installs the chart on a real node, as root
# make release VERSION=v0.1.0   builds images, packages and archives into dist/; KEY=FILE signs them
# make push REPOSITORY=ghcr.io/vedette-io   sends the images of dist/ to a registry
# make fleet-servers  measures 2,000 agents at three servers, and the loss of one
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

.PHONY: shards fleet-servers replication bench-replication chart chart-node terraform rbac upgrade kubernetes-versions all help build demo quick test test-databases test-vault controlplane prometheus convergence chaos hostile move differential verify-clouddriver verify-spinnaker verify-beside verify-deck lint assignments fmt generate verify-generate release push bench bench-ops bench-api clean

all: build lint test

help:
	@sed -n 's/^# make/make/p;/^$$/q' Makefile

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

# The packages that take longest begin first, the longest before the others, so that none of them is alone at the end. Many tests
# wait, so one more package than there are processors runs at a time, and twice as many tests of a
# package as there are processors.
LONGEST := ./test/convergence ./test/servers ./test/hostile ./test/journey ./server/store ./agent/operate ./server/clouddriver ./agent/watch ./test/beside ./test/docs
PROCESSORS := $(shell getconf _NPROCESSORS_ONLN)
PACKAGES_AT_ONCE ?= $(shell expr $(PROCESSORS) + 1)
TESTS_AT_ONCE ?= $(shell expr $(PROCESSORS) '*' 2)

test: build controlplane prometheus test-databases test-vault
	CGO_ENABLED=1 go test $(RACE) -tags $(TAGS) -timeout 40m -p $(PACKAGES_AT_ONCE) -parallel $(TESTS_AT_ONCE) $(LONGEST) ./...
	./scripts/test-packages.sh
	go test -C tools/release -count=1 -timeout 40m .
	go test -C tools/chart -count=1 -short ./...

# Packages whose tests start neither control planes nor databases nor programs.
QUICK = $(shell go list -f '{{.ImportPath}} {{join .TestImports " "}} {{join .XTestImports " "}}' ./... | \
	grep -vE '/test/(controlplane|databases|fleet|process|programs|prometheus|vaultserver)|^[^ ]*/(bench|test)/' | cut -d ' ' -f 1)

quick:
	$(LINT) run --new ./...
	go test -short -tags $(TAGS) $(QUICK)

# Seeded faults over real processes: SEEDS of each database, from FROM on, with
# clocks that are wrong by SKEW, and OBJECTS where many are wanted.
SEEDS ?= 20
FROM ?= 1
SKEW ?= 0s
OBJECTS ?= 50000
convergence: controlplane test-databases
	go test ./test/convergence -run 'TestConvergence|TestLargeResync|TestStaleDataIsMarkedStale|TestLagIsNeverBelowTheTruth' -losses -timeout 24h -seeds $(SEEDS) -from $(FROM) -skew $(SKEW) -objects $(OBJECTS) $(if $(DB),-db $(DB)) -v

# The store's suite with accounts spread over several databases, and what one, two and three of them commit. make test runs parts of the suite.
shards: test-databases
	go test ./server/store -count=1 -timeout 1h -run 'TestSeveral|TestPostgreSQLAndMariaDB' -shards -v
	go test ./server/store -timeout 1h -run '^$$' -bench Shards -benchtime 6s

# Three servers on one database after the other, agents, control planes and clients, with everything failing at random, for TIME. SEED is that of
# the first round; the time of day if not given. DB=postgres restricts it to one database.
TIME ?= 20m
SEED ?= 0
chaos: controlplane test-databases
	scripts/test-databases.sh several-machines
	go test ./test/chaos -tags $(TAGS) -count=1 -run TestChaos -timeout 24h -long -clocks -restores -planes 4 -time $(TIME) -seed $(SEED) -db $(or $(DB),postgres,patroni,mariadb,galera) -v

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
	go test ./test/beside -tags $(TAGS) -run 'TestMove|TestBadUpstreams|TestManyLargeAnswers' -timeout 24h -freeze $(FREEZE) -v

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
		-clouddriver '$(abspath $(SPINNAKER))/clouddriver.args' -bench MergedLists -benchtime 5x -v

# Deck in a browser over Gate, Orca and a Clouddriver, before, while and after an account of that moves to an
# agent. SPINNAKER is a directory with their Java argument files, DECK one with Deck's files. What is
# missing is printed. CHROMIUM is the browser, ONLY restricts the pages, OUT is for pictures and texts.
DECK ?=
verify-deck:
	@go run -tags $(TAGS) ./test/deck --spinnaker '$(SPINNAKER)' --deck '$(DECK)' $(if $(CHROMIUM),--chromium '$(CHROMIUM)') $(if $(ONLY),--only '$(ONLY)') $(if $(OUT),--out '$(OUT)')

lint: assignments
	$(LINT) run ./...
	$(LINT) fmt --diff ./...
	cd tools/release && go tool -modfile=../golangci-lint.mod golangci-lint run --config ../../.golangci.yml ./...
	cd tools/chart && go tool -modfile=../golangci-lint.mod golangci-lint run --config ../../.golangci.yml ./...
	cd tools/chart/node && go tool -modfile=../../golangci-lint.mod golangci-lint run --config ../../../.golangci.yml ./...

# No statement assigns three values at once. FIX=-fix writes several statements instead.
ASSIGNMENTS ?= ./...
assignments:
	@go build -o bin/ ./internal/lint/assignments
	go vet $(FIX) -tags $(TAGS) -vettool=bin/assignments $(ASSIGNMENTS)
	for module in tools/release tools/chart tools/chart/node; do go vet -C $$module $(FIX) -vettool=$(CURDIR)/bin/assignments ./...; done

fmt:
	gofmt -w .

generate:
	go generate ./...
	go generate -C tools/chart ./...

verify-generate: generate
	git diff --exit-code

# The chart's tests are a module of their own, because Helm's libraries take minutes to compile. Results are not cached (-count=1), because
# Go does not notice changes of files outside of the module.
chart: controlplane
	go test -C tools/chart -count=1 -timeout 40m ./...
	go test -C tools/release -count=1 -timeout 40m -run Helm . -helm

# Programs of the version before and of this one together, on all databases; make test does it on SQLite.
upgrade: controlplane test-databases
	go test ./test/upgrade -tags $(TAGS) -v
	go test ./test/convergence -tags $(TAGS) -timeout 40m -run 'TestVersionsTakeTurns|TestServerGoesBackAfterAMigration' -db all -v

# The store's suite, and faults under load, on databases of several machines. make test runs what is quick of it. The last one has a server,
# agents and a control plane, and a failover that loses commits.
replication: controlplane test-databases
	scripts/test-databases.sh several-machines
	go test ./test/replication -tags $(TAGS) -count=1 -timeout 40m -all -v
	go test ./test/convergence -tags $(TAGS) -count=1 -timeout 20m -run TestFailoverThatLosesCommits -db patroni -v

# What replication costs, for docs/scaling.md.
bench-replication: controlplane test-databases
	scripts/test-databases.sh several-machines
	go test ./test/replication -tags $(TAGS) -timeout 40m -run '^$$' -bench . -benchtime 5s

# Tests of what depends on the version of Kubernetes, one version after the other. go test would take the result of another
# version for theirs, because it does not notice what TestMain reads of the environment.
KUBERNETES_VERSIONS ?= 1.34 1.35 1.36
kubernetes-versions:
	for version in $(KUBERNETES_VERSIONS); do \
		KUBERNETES=$$version go run ./test/controlplane/cmd/controlplane build; \
		KUBERNETES=$$version go test -count=1 -tags $(TAGS) -timeout 60m -p 1 ./test/controlplane ./agent/watch ./agent/operate ./test/journey ./test/rbac; \
		KUBERNETES=$$version go test -C tools/chart -count=1 -timeout 40m .; \
	done

# OpenTofu and the Helm provider, which take minutes to compile, apply and destroy the examples of deploy/terraform.
terraform: controlplane
	go test -C tools/chart -count=1 -timeout 40m -run Terraform . -terraform

# Removes each right of the printed rules from an agent's user of its own. make test removes one of each verb.
rbac: controlplane
	go test ./test/rbac -tags $(TAGS) -timeout 40m -all -v

# The chart's Pods on a real node (test/node), from images of this tree and of an older commit: upgrades under load, NetworkPolicies,
# volumes. It needs root.
chart-node: controlplane
	scripts/test-node.sh
	scripts/test-databases.sh
	VEDETTE_TEST_NODE=1 go test ./test/node -count=1 -timeout 60m -v
	VEDETTE_TEST_NODE=1 go test -C tools/chart/node -count=1 -timeout 60m -v .

# Everything that a release has, for all platforms. The same commit, version and Go release give the same bytes.
DIST ?= dist
KEY ?=
release:
	@go run -C tools/release . build --root ../.. --out '$(abspath $(DIST))' --version '$(VERSION)' $(if $(KEY),--key '$(abspath $(KEY))')

REPOSITORY ?=
push:
	@go run -C tools/release . push --from '$(abspath $(DIST))' $(REPOSITORY)

# Agents with simulated clusters at servers that share a PostgreSQL database, one of which is killed. FLAGS are those of the test, for
# example "-servers 1 -agents 200 -accounts 500 -load 10m". make test runs the same with few agents.
fleet-servers: test-databases
	go test ./test/scale -tags $(TAGS) -run TestServers -count=1 -timeout 24h -v -limits=false -durable -agents 2000 -accounts 5000 -changes 200 -operations 500 \
		-processes 4 -bookmarks 1m -idle 2m -load 5m $(FLAGS)

bench: controlplane test-databases
	go run ./bench --write docs/performance.md

bench-ops: controlplane
	go run ./bench --only operations --write docs/performance.md

# FLAGS=--quick measures a tenth of everything.
bench-api: test-databases
	go run ./bench --only api --json bin/bench-api.json --write docs/performance.md $(FLAGS)

clean:
	rm -rf bin dist
