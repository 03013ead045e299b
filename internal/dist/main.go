// Command dist builds the files of a release: for each target an archive with the
// program, its page for man, its completions and the texts that belong to it, a list of
// what it is built from, and the checksums of all. `make dist` runs it in the root of
// the tree.
//
// What it writes depends on the commit, the version and the Go toolchain, and on nothing
// else: neither on the time nor on the directory.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
)

func main() {
	o := options{}
	flag.StringVar(&o.version, "version", "", "version; without it the one in the sources")
	flag.StringVar(&o.out, "out", "dist", "directory for the files")
	targets := flag.String("targets", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64", "systems and processors")
	flag.Float64Var(&o.limit, "limit", 0, "largest size of a program in MiB; 0 means no limit")
	flag.Parse()
	o.targets = strings.Split(*targets, ",")
	if err := o.run(); err != nil {
		fmt.Fprintf(os.Stderr, "error: %v\n", err)
		os.Exit(1)
	}
}
