# Copyright The Opdock Authors.
# SPDX-License-Identifier: Apache-2.0
#
# Everything here needs Go and make and nothing else: tools are built from the tools module, and the control plane from
# its own module.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

OPDOCK := bin/opdock
CONTROLPLANE := bin/opdock-controlplane
GOLANGCI_LINT := bin/golangci-lint
DELVE := bin/dlv
MODULES := . controlplane tools bench/kro test/charts test/browser test/conformance/upstream

# The chart says which version this is; an image is tagged with it, and made at the time of the last commit, so that it
# is the same whenever and wherever it is made from the same source.
VERSION ?= $(shell sed -n 's/^appVersion: *//p' charts/opdock/Chart.yaml)
# Where users get the image from. There is no default: it is a registry of yours.
IMAGE ?= opdock-manager

# What is compiled into the control plane. Its build asks go about some thousand packages, which takes seconds even if
# nothing has changed, so make decides by the time stamps whether to ask at all.
CONTROLPLANE_SOURCES := $(shell find controlplane -type f -not -name '*_test.go' -not -path '*/testdata/*')

# The control plane is built without cgo, and so are its tests and checks: with it, all of Kubernetes would be compiled a
# second time.

# The race detector needs cgo, and go turns cgo off where there is no C compiler.
RACE = $(if $(filter 1,$(shell go env CGO_ENABLED)),-race)

# The race detector is for packages whose own code starts goroutines, and for test/fleet, in which the controllers of all
# kinds run side by side in one process. It costs: every dependency is compiled a second time, each test binary is linked
# with it, and tests use several times the CPU. The other packages start none: those that lock are raced where they are
# used, and those that test opdock as a program drive other processes. Left out as well are those of which the tests run no
# goroutine of the package (bench), whose code is generated (client), or whose goroutines run in test/fleet (podcluster).
UNRACED := %/bench %/client/informers/externalversions %/internal/controller/podcluster
TESTED = $(eval TESTED := $$(shell go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...))$(TESTED)
# Campaigns run several control planes at once, so they have the machine to themselves.
CAMPAIGNS := %/test/prove %/test/upgrade
CONCURRENT = $(filter-out $(UNRACED),$(filter $(addprefix %/opdock/,test/fleet $(shell grep -rlE --include='*.go' --exclude='*_test.go' \
	-e '^[[:space:]]*go [[:alpha:]]' -e '[.]Go.func' . | xargs -n 1 dirname | sort -u | sed 's|^\./||')),$(TESTED)))

.PHONY: help
help: ## Show this help
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: $(OPDOCK) $(CONTROLPLANE) ## Build bin/opdock and bin/opdock-controlplane; the first time takes minutes

# Always handed to go build, which knows best what has changed.
.PHONY: $(OPDOCK)
$(OPDOCK):
	@go build -o $@ ./cmd/opdock

# opdock comes first because it shows the progress of this build, but a new opdock is no reason for a new control plane.
$(CONTROLPLANE): $(CONTROLPLANE_SOURCES) | $(OPDOCK)
	@$(OPDOCK) build-controlplane --output $@
	@touch $@

# Whatever opdock run takes can be given as well: make run RUN="--until-ready"
.PHONY: run
run: build ## Run the fleet and its samples on a cluster, and watch them
	@$(OPDOCK) run $(RUN)

# Tests that drive opdock use the one that is built here. Each package is tested once, with or without the race detector;
# package generate twice, because its comparison with upstream's programs, which -short leaves out, costs minutes with it.
# The comparison of objects that -tags opdock_unsafe selects is tested without a control plane, which makes no difference to it.
# go vet is left to make lint, which runs all of its checks: go test would run some on all dependencies, twice. No test needs
# a symbol table, and linking without it takes a third less.
TESTFLAGS := -vet=off -ldflags=-s
.PHONY: test
test: export OPDOCK_CONTROLPLANE := $(CURDIR)/$(CONTROLPLANE)
test: export OPDOCK_PROGRAM := $(CURDIR)/$(OPDOCK)
test: export OPDOCK_DELVE := $(CURDIR)/$(DELVE)
test: build $(GOLANGCI_LINT) $(DELVE) ## Run all tests
	go test $(TESTFLAGS) -timeout 20m $(filter-out $(CAMPAIGNS) $(filter-out %/generate,$(CONCURRENT)),$(TESTED))
	go test $(TESTFLAGS) -timeout 20m -p 1 $(filter $(CAMPAIGNS),$(TESTED))
	go test $(TESTFLAGS) -timeout 20m -short $(RACE) $(CONCURRENT)
	OPDOCK_CONTROLPLANE= go test $(TESTFLAGS) -tags opdock_unsafe ./why/...
	CGO_ENABLED=0 go -C controlplane test $(TESTFLAGS) ./...
	go -C test/charts test $(TESTFLAGS) ./...
	@$(MAKE) --no-print-directory chromium
	go -C test/browser test $(TESTFLAGS) ./...

# Debian's, where it may be installed. Without it the tests that look at the page skip themselves, which is said here
# because go test says it to nobody.
.PHONY: chromium
chromium:
	@if [ -n "$${OPDOCK_CHROMIUM:-}" ] || command -v chromium chromium-browser google-chrome >/dev/null; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "Installing Chromium, to look at the page with."; \
		export DEBIAN_FRONTEND=noninteractive; { apt-get install -y --no-install-recommends chromium || { apt-get update && apt-get install -y --no-install-recommends chromium; }; } >/dev/null 2>&1 && exit 0; \
	fi; \
	echo "NOT RUN: there is no Chromium, and it could not be installed; the tests in test/browser, which look at the page, are skipped." >&2

.PHONY: generate
generate: $(OPDOCK) ## Write what is made from the types in api, and the chart's copies of it
	@$(OPDOCK) generate
	@go run ./hack/ship chart

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Run golangci-lint on all our code
	$(GOLANGCI_LINT) run ./...
	cd controlplane && CGO_ENABLED=0 ../$(GOLANGCI_LINT) run --config ../.golangci.yml ./...
	cd test/charts && ../../$(GOLANGCI_LINT) run --config ../../.golangci.yml ./...
	cd test/browser && ../../$(GOLANGCI_LINT) run --config ../../.golangci.yml ./...

# Built once and not run by "go tool", which would link it anew for each run that misses the cache.
$(GOLANGCI_LINT): tools/go.mod tools/go.sum
	@echo "Building golangci-lint from source. The first time, this takes minutes."
	@go -C tools build -o ../$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $@

# The debugger of opdock dev --debug, for its tests. It is small: some fifteen seconds of one core, the first time.
$(DELVE): tools/go.mod tools/go.sum
	@CGO_ENABLED=0 go -C tools build -o ../$@ github.com/go-delve/delve/cmd/dlv
	@touch $@

.PHONY: verify
verify: verify-headers verify-format verify-modules verify-api verify-generated ## Check what is generated, formatted and derived

.PHONY: verify-headers
verify-headers:
	@echo "verify: license headers"
	@missing=$$(git ls-files --cached --others --exclude-standard '*.go' | while read -r file; do \
		[ ! -e "$$file" ] || head -n 5 "$$file" | grep -q 'SPDX-License-Identifier: Apache-2.0' || echo "  $$file"; done); \
	[ -z "$$missing" ] || { printf 'these files lack the license header:\n%s\n' "$$missing" >&2; exit 1; }

.PHONY: verify-format
verify-format:
	@echo "verify: gofmt"
	@unformatted=$$(git ls-files --cached --others --exclude-standard '*.go' | while read -r file; do \
		[ ! -e "$$file" ] || gofmt -l "$$file"; done); \
	[ -z "$$unformatted" ] || { printf 'gofmt would change:\n%s\n' "$$unformatted" >&2; exit 1; }

.PHONY: verify-modules
verify-modules:
	@for module in $(MODULES); do echo "verify: go mod tidy in $$module"; go -C "$$module" mod tidy -diff; done

# Those conventions of Kubernetes APIs that a program can check and the API server does not.
.PHONY: verify-api
verify-api:
	@echo "verify: API conventions"
	@go test -vet=off ./api/apitest -run Conventions

# Compared with the tree as it was and not with the last commit, so that it can be run before committing.
.PHONY: verify-generated
verify-generated:
	@echo "verify: generated files"
	@tree() { git status --porcelain; git diff; git ls-files --others --exclude-standard -z | xargs -0 -r cksum; }; \
	before=$$(tree); \
	for module in . controlplane; do go -C "$$module" generate ./...; done; \
	[ "$$before" = "$$(tree)" ] || { echo 'go generate has changed files; look at them and commit them' >&2; git status --short >&2; exit 1; }

.PHONY: bench
bench: build chromium ## Measure start-up, memory and throughput
	go run ./bench

# Upstream's specs, of the same version as the control plane: LENS=1 sends their requests through the lens, and
# CONFORMANCE="--focus Namespaces" runs some of them. They are compiled without cgo, as the control plane is, which most
# packages are shared with.
SPECS := bin/e2e.test
GINKGO := bin/ginkgo
.PHONY: conformance
conformance: build $(SPECS) $(GINKGO) ## Run upstream's Conformance specs, and write docs/conformance.md
	go run ./test/conformance $(if $(LENS),--lens) $(CONFORMANCE)

$(SPECS): test/conformance/upstream/go.mod test/conformance/upstream/go.sum
	@echo "Building upstream's specs from source. The first time, this takes minutes."
	@version=$$(go -C test/conformance/upstream list -m -f '{{.Version}}' k8s.io/kubernetes); \
	CGO_ENABLED=0 go -C test/conformance/upstream test -c -vet=off -o ../../../$@ \
		-ldflags="-s -w -X k8s.io/component-base/version.gitVersion=$$version" k8s.io/kubernetes/test/e2e
	@touch $@

$(GINKGO): test/conformance/upstream/go.mod test/conformance/upstream/go.sum
	@CGO_ENABLED=0 go -C test/conformance/upstream build -o ../../../$@ github.com/onsi/ginkgo/v2/ginkgo
	@touch $@

# A campaign on each kind of the fleet. They must find nothing; what opdock prove takes can be given as well:
# make prove KINDS=robot PROVE="--families crash --budget 2m"
KINDS := appservice collector kapp podcluster robot
PROVE = --budget 10m
.PHONY: prove
prove: build ## Prove that the fleet survives what production does to it; 10 minutes for each kind
	@failed=; for kind in $(KINDS); do $(OPDOCK) prove --scenario test/prove/scenarios/$$kind.yaml $(PROVE) || failed="$$failed $$kind"; done; \
	[ -z "$$failed" ] || { echo "opdock prove has failed for:$$failed" >&2; exit 1; }

# Which defects prove finds: make mutants MUTANTS="robot collector-random"
.PHONY: mutants
mutants: export OPDOCK_CONTROLPLANE := $(CURDIR)/$(CONTROLPLANE)
mutants: build ## Break the fleet on purpose, and write to docs/mutants.md what prove finds
	go run ./test/mutants $(MUTANTS)

.PHONY: compatibility
compatibility: export OPDOCK_CONTROLPLANE := $(CURDIR)/$(CONTROLPLANE)
compatibility: build ## Build and run operators with all supported versions of controller-runtime
	go test -tags compatibility -timeout 60m -run TestVersions -v ./test/instrument

.PHONY: image
image: ## Make an image of the manager in dist/image, without Docker
	@SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)} go run ./hack/ship image --version=$(VERSION)

.PHONY: installer
installer: ## Write dist/install.yaml; IMAGE and VERSION say which image it uses
	@go run ./hack/ship installer --image=$(IMAGE) --version=$(VERSION)

.PHONY: clean
clean: ## Remove what was built here; clusters and Go's caches stay
	rm -rf bin dist
