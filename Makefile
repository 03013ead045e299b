# The commands of the project. `make test` needs Go and git; what it cannot run
# without another program it skips and says so.

GO ?= go
FUZZTIME ?= 10s

.PHONY: run test bench lint race fuzz soak test-real build

run:
	$(GO) run . --demo

test:
	$(GO) test ./...

race:
	$(GO) test -race -short ./...

bench:
	$(GO) test -run '^$$' -bench . -benchmem ./...

lint:
	$(GO) vet ./...
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "gofmt would change: $$unformatted"; exit 1; }
	$(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...

fuzz:
	./.ci/fuzz $(FUZZTIME)

# 20 senders, 20 000 messages, 20 kills; a million tiny frames.
soak:
	RELAY_SOAK=1 $(GO) test -count 1 -timeout 300s -v -run 'TestSoak|TestY03TinyFrames' ./relay

test-real:
	./.ci/real

build:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o zcoder .
