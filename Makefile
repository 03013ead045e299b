# The commands of the project. `make test` needs Go and git; what it cannot run
# without another program it skips and says so.

GO ?= go
FUZZTIME ?= 10s
# The version of a release; without a tag the one in the sources.
VERSION ?= $(shell git describe --tags --match 'v[0-9]*' --dirty 2>/dev/null | sed 's/^v//')
PREFIX ?= /usr/local
# The largest that a released program may be, in MiB.
LIMIT ?= 18

.PHONY: run test bench lint race fuzz soak test-real build dist install

run:
	$(GO) run . --demo

test:
	$(GO) test ./...

race:
	$(GO) test -race -short ./...

# The tables of docs/performance.md, in about ten minutes; `make bench BENCH=quick` prints rough ones.
BENCH ?= full
bench:
	PERF=$(BENCH) $(GO) test -count 1 -timeout 60m -v -run '^TestBench$$' ./internal/perf

lint:
	$(GO) vet ./...
	@unformatted=$$(gofmt -l .); test -z "$$unformatted" || { echo "gofmt would change: $$unformatted"; exit 1; }
	$(GO) run honnef.co/go/tools/cmd/staticcheck@v0.8.2 ./...

fuzz:
	./.ci/fuzz $(FUZZTIME)

# Runs the program for this long and looks at what stays behind; before it the relay: 20 senders, 20 000
# messages, 20 kills, a million tiny frames.
SOAK ?= 20m
soak:
	RELAY_SOAK=1 $(GO) test -count 1 -timeout 300s -v -run 'TestSoak|TestY03TinyFrames' ./relay
	SOAK=$(SOAK) $(GO) test -count 1 -timeout 0 -v -run '^TestSoak$$' ./internal/perf

test-real:
	./.ci/real

build:
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w $(if $(VERSION),-X zcoder/internal/app.version=$(VERSION))' -o zcoder .

# Archives, checksums and lists of parts below dist/, the same bytes for the same commit.
dist:
	rm -rf dist
	$(GO) run ./internal/dist -out dist -version '$(VERSION)' -limit $(LIMIT)

# The program, its page for man and its completions below PREFIX, or DESTDIR/PREFIX.
SHARE = $(DESTDIR)$(PREFIX)/share
install: build
	mkdir -p $(DESTDIR)$(PREFIX)/bin $(SHARE)/man/man1 $(SHARE)/bash-completion/completions $(SHARE)/zsh/site-functions $(SHARE)/fish/vendor_completions.d
	install -m 755 zcoder $(DESTDIR)$(PREFIX)/bin/zcoder
	./zcoder help --man >$(SHARE)/man/man1/zcoder.1
	./zcoder completion bash >$(SHARE)/bash-completion/completions/zcoder
	./zcoder completion zsh >$(SHARE)/zsh/site-functions/_zcoder
	./zcoder completion fish >$(SHARE)/fish/vendor_completions.d/zcoder.fish
