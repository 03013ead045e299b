// Package perf measures: `make bench` fills the tables of docs/performance.md, and
// `make soak` runs the program for a while and looks at what it leaves. It holds tests
// alone, which do nothing unless PERF or SOAK is set.
//
// It runs the program as its users do, against the scripted model server, which
// answers at once, so that only the program's own cost is seen; and the Go benchmarks
// of the other packages, of which sources names those that count.
package perf
