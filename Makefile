# tiptoe: build test bench lint demo, and the long campaigns.
GO ?= go
# A clone owned by somebody else has no history that git would tell.
VCS := $(shell git rev-parse HEAD >/dev/null 2>&1 && echo true || echo false)

.PHONY: build test bench bench-api bench-fleet lint demo fleet-demo fleet-long docs dashboard fuzz sim-long kill-marathon accept-long race story clean help

build: ## bin/tiptoe
	$(GO) build -trimpath -buildvcs=$(VCS) -o bin/tiptoe ./cmd/tiptoe

test: ## everything that must hold, in some minutes (scripts/test.sh)
	@bash scripts/test.sh

bench: ## tiptoe beside Colly and wget2 on a simulated web; ARGS="--rounds 5"
	$(GO) run ./bench/run $(ARGS)

bench-fleet: ## throughput of 1, 2 and 4 workers, and the cost of Redis and PostgreSQL against the embedded stores
	TIPTOE_FLEET=bench $(GO) test -count=1 -v -run Test_bench -timeout 20m ./internal/fleettest

bench-api: ## the API's speed at 100,000 pages, and what it costs the crawls beside it
	$(GO) run ./bench/service $(ARGS)

lint: ## gofmt, go vet, staticcheck (from a module of its own, tools/)
	@test -z "$$(gofmt -l bench cmd internal scripts)" || { gofmt -l bench cmd internal scripts; exit 1; }
	$(GO) vet ./...
	cd bench/colly && $(GO) vet ./...
	$(GO) tool -modfile=tools/go.mod staticcheck ./...

demo: build ## a little web on this machine, crawled with the live view
	bin/tiptoe demo

fleet-demo: ## Redis, PostgreSQL, a server, three workers and a little web on this machine; FOR=20 stops by itself
	@bash scripts/fleet-demo.sh

fleet-long: ## the fleet with the figures of the promises: kills for two minutes, ten restarts of Redis
	TIPTOE_FLEET=full $(GO) test -count=1 -v -timeout 60m ./internal/fleettest

docs: ## rewrite what is generated: docs/CONFIG.md, docs/openapi.yaml, docs/live-view.svg
	$(GO) test ./cmd/tiptoe -run 'Test_the_configuration_document' -update
	$(GO) test ./internal/tui -run 'TestThePictureInTheDocsIsTheView' -update
	$(GO) test ./internal/api -run 'Test_the_openapi_document' -update

dashboard: ## build dashboard/ into the program (needs Node; nothing else does)
	@bash scripts/dashboard.sh build

fuzz: ## every fuzz target, FUZZTIME=30s each; ONLY=robots picks some
	@bash scripts/fuzz.sh

sim-long: ## whole crawls in virtual time, seed after seed; ARGS="-for 8h"
	$(GO) run ./scripts/simlong $(ARGS)

kill-marathon: ## kill -9 and resume, again and again, on real sockets; ARGS="-for 8h"
	$(GO) run ./scripts/killmarathon $(ARGS)

accept-long: ## the acceptance tests with the figures of the promises
	TIPTOE_KILLS=20 TIPTOE_MEMORY=full $(GO) test -count=1 -v -timeout 60m ./internal/acceptance

race: ## the race detector also where make test leaves it out
	$(GO) test -race -timeout 30m ./cmd/tiptoe ./internal/frontier/redisstore ./internal/ledger/postgres ./internal/fleetsim ./internal/dashboard

story: ## a rate-limited server's pace learned to the end, with every limit; many minutes
	TIPTOE_STORY=full $(GO) test -count=1 -v -timeout 120m ./internal/story

clean:
	rm -rf bin

help: ## this list
	@grep -E '^[a-z-]+:.*## ' Makefile | sed -E 's/:.*## /\t/' | expand -t 16
