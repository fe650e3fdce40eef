# Copyright The Opdock Authors.
# SPDX-License-Identifier: Apache-2.0
#
# All targets need only Go and make. Tools are built from the tools module, and the control plane from its own module.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

OPDOCK := bin/opdock
CONTROLPLANE := bin/opdock-controlplane
GOLANGCI_LINT := bin/golangci-lint
DELVE := bin/dlv
MODULES := . controlplane tools bench/kro test/charts test/browser test/conformance/upstream

# The chart defines the version, which is also the tag of the image. The image gets the time of the last commit, so
# the same source always gives the same image.
VERSION ?= $(shell sed -n 's/^appVersion: *//p' charts/opdock/Chart.yaml)
# The registry that users pull the image from. There is no default, because it is your own registry.
IMAGE ?= opdock-manager

# Sources of the control plane. Checking its thousands of packages takes go build seconds even if nothing has changed,
# so make compares timestamps first.
CONTROLPLANE_SOURCES := $(shell find controlplane -type f -not -name '*_test.go' -not -path '*/testdata/*')

# The control plane, its tests and its checks are built without cgo. With cgo, all of Kubernetes would be compiled a
# second time.

# The race detector needs cgo, and go turns cgo off where there is no C compiler.
RACE = $(if $(filter 1,$(shell go env CGO_ENABLED)),-race)

# The race detector covers packages whose own code starts goroutines, and test/fleet, where the controllers of all
# kinds run in one process. It is expensive: every dependency is compiled a second time, each test binary is linked
# with it, and tests use several times the CPU. The other packages start no goroutines. Packages with locks are
# covered by the tests of their callers, and tests of the opdock binary run other processes. Also left out are
# packages whose tests run none of their goroutines (bench), whose code is generated (client), or whose goroutines run
# in test/fleet (podcluster).
UNRACED := %/bench %/client/informers/externalversions %/internal/controller/podcluster
TESTED = $(eval TESTED := $$(shell go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...))$(TESTED)
# Campaigns run several control planes at once, so only they run at the same time. They wait most of the time.
CAMPAIGNS := %/test/prove %/test/upgrade
CONCURRENT = $(filter-out $(UNRACED),$(filter $(addprefix %/opdock/,test/fleet $(shell grep -rlE --include='*.go' --exclude='*_test.go' \
	-e '^[[:space:]]*go [[:alpha:]]' -e '[.]Go.func' . | xargs -n 1 dirname | sort -u | sed 's|^\./||')),$(TESTED)))

.PHONY: help
help: ## Show this help
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: $(OPDOCK) $(CONTROLPLANE) ## Build bin/opdock and bin/opdock-controlplane; the first time takes minutes

# Always run go build, which detects changes itself.
.PHONY: $(OPDOCK)
$(OPDOCK):
	@go build -o $@ ./cmd/opdock

# opdock is built first because it shows the progress of this build. It is an order-only prerequisite: a new opdock
# does not rebuild the control plane.
$(CONTROLPLANE): $(CONTROLPLANE_SOURCES) | $(OPDOCK)
	@$(OPDOCK) build-controlplane --output $@
	@touch $@

# RUN passes flags to opdock run: make run RUN="--until-ready"
.PHONY: run
run: build ## Run the fleet and its samples on a cluster, and watch them
	@$(OPDOCK) run $(RUN)

# Tests of the command use the binary that is built here. Each package is tested once, with or without the race
# detector. Package generate is tested twice: -short skips its comparison with upstream's programs, which takes
# minutes with the race detector. The comparison of objects under -tags opdock_unsafe needs no control plane. make
# lint runs go vet: go test would run parts of it on all dependencies, twice. No test needs a symbol table, and
# linking without one takes a third less time.
TESTFLAGS := -vet=off -ldflags=-s
.PHONY: test
# Garbage collection takes a third of the CPU time of the control planes under test. This trades memory for it.
test: export GOGC := 300
test: export OPDOCK_CONTROLPLANE := $(CURDIR)/$(CONTROLPLANE)
test: export OPDOCK_PROGRAM := $(CURDIR)/$(OPDOCK)
test: export OPDOCK_DELVE := $(CURDIR)/$(DELVE)
test: build $(GOLANGCI_LINT) $(DELVE) ## Run all tests
	go test $(TESTFLAGS) -timeout 20m $(filter-out $(CAMPAIGNS) $(filter-out %/generate,$(CONCURRENT)),$(TESTED))
	go test $(TESTFLAGS) -timeout 20m $(filter $(CAMPAIGNS),$(TESTED))
	go test $(TESTFLAGS) -timeout 20m -short $(RACE) $(CONCURRENT)
	OPDOCK_CONTROLPLANE= go test $(TESTFLAGS) -tags opdock_unsafe ./why/...
	CGO_ENABLED=0 go -C controlplane test $(TESTFLAGS) ./...
	go -C test/charts test $(TESTFLAGS) ./...
	@$(MAKE) --no-print-directory chromium
	go -C test/browser test $(TESTFLAGS) ./...

# Installs Debian's Chromium where that is allowed. Without it, the browser tests are skipped. go test hides skipped
# tests, so this target prints a note.
.PHONY: chromium
chromium:
	@if [ -n "$${OPDOCK_CHROMIUM:-}" ] || command -v chromium chromium-browser google-chrome >/dev/null; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "Installing Chromium for the tests in test/browser."; \
		export DEBIAN_FRONTEND=noninteractive; { apt-get install -y --no-install-recommends chromium || { apt-get update && apt-get install -y --no-install-recommends chromium; }; } >/dev/null 2>&1 && exit 0; \
	fi; \
	echo "NOT RUN: Chromium is missing and could not be installed, so the tests in test/browser are skipped." >&2

.PHONY: generate
generate: $(OPDOCK) ## Generate code and manifests from the types in api, and copy them to the chart
	@$(OPDOCK) generate
	@go run ./hack/ship chart

.PHONY: lint
lint: $(GOLANGCI_LINT) ## Run golangci-lint on all our code
	$(GOLANGCI_LINT) run ./...
	cd controlplane && CGO_ENABLED=0 ../$(GOLANGCI_LINT) run --config ../.golangci.yml ./...
	cd test/charts && ../../$(GOLANGCI_LINT) run --config ../../.golangci.yml ./...
	cd test/browser && ../../$(GOLANGCI_LINT) run --config ../../.golangci.yml ./...

# Built once instead of run by "go tool", which links it again whenever the cache misses.
$(GOLANGCI_LINT): tools/go.mod tools/go.sum
	@echo "Building golangci-lint from source. The first time, this takes minutes."
	@go -C tools build -o ../$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $@

# The debugger for the tests of opdock dev --debug. The first build takes about fifteen seconds of one core.
$(DELVE): tools/go.mod tools/go.sum
	@CGO_ENABLED=0 go -C tools build -o ../$@ github.com/go-delve/delve/cmd/dlv
	@touch $@

.PHONY: verify
verify: verify-headers verify-format verify-modules verify-api verify-generated ## Check formatting, headers, modules and generated files

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

# Kubernetes API conventions that a linter can check and the API server does not.
.PHONY: verify-api
verify-api:
	@echo "verify: API conventions"
	@go test -vet=off ./api/apitest -run Conventions

# Compares with the working tree and not with the last commit, so you can run it before you commit.
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
# CONFORMANCE="--focus Namespaces" runs some of them. They are compiled without cgo, like the control plane, because
# the two share most packages.
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

# Edits the children of the fleet at random, with other edits each time: make soak EDITS=100
EDITS := 500
.PHONY: soak
soak: export OPDOCK_CONTROLPLANE := $(CURDIR)/$(CONTROLPLANE)
soak: build ## Make 500 random edits to the children of each kind of the fleet
	go test -vet=off -timeout 120m -count 1 -run 'TestRandomEditor|TestTwins' ./test/drift -seed 0 -edits $(EDITS)

# Runs a campaign on each kind of the fleet, which must find nothing. PROVE passes flags to opdock prove: make prove
# KINDS=robot PROVE="--families crash --budget 2m"
KINDS := appservice collector kapp podcluster robot
PROVE = --budget 10m
.PHONY: prove
prove: build ## Run a prove campaign on each kind of the fleet; 10 minutes for each kind
	@failed=; for kind in $(KINDS); do $(OPDOCK) prove --scenario test/prove/scenarios/$$kind.yaml $(PROVE) || failed="$$failed $$kind"; done; \
	[ -z "$$failed" ] || { echo "opdock prove has failed for:$$failed" >&2; exit 1; }

# Shows which defects prove finds: make mutants MUTANTS="robot collector-random"
.PHONY: mutants
mutants: export OPDOCK_CONTROLPLANE := $(CURDIR)/$(CONTROLPLANE)
mutants: build ## Break the fleet on purpose, and write to docs/mutants.md what prove finds
	go run ./test/mutants $(MUTANTS)

# make test runs a few of these campaigns. Each takes half a minute or more.
.PHONY: defects
defects: export OPDOCK_CONTROLPLANE := $(CURDIR)/$(CONTROLPLANE)
defects: export OPDOCK_PROGRAM := $(CURDIR)/$(OPDOCK)
defects: export OPDOCK_TEST_DEFECTS := all
defects: build ## Run campaigns on operators with all known defects, one for each family at least
	go test -timeout 60m ./test/prove
	go test -timeout 60m ./test/scaffold -run Campaign

.PHONY: compatibility
compatibility: export OPDOCK_CONTROLPLANE := $(CURDIR)/$(CONTROLPLANE)
compatibility: build ## Build and run operators with all supported versions of controller-runtime
	go test -tags compatibility -timeout 60m -run TestVersions -v ./test/instrument

.PHONY: image
image: ## Build an image of the manager in dist/image, without Docker
	@SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)} go run ./hack/ship image --version=$(VERSION)

.PHONY: installer
installer: ## Write dist/install.yaml; IMAGE and VERSION set its image
	@go run ./hack/ship installer --image=$(IMAGE) --version=$(VERSION)

.PHONY: clean
clean: ## Remove what was built here; clusters and Go's caches stay
	rm -rf bin dist
