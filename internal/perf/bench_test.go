package perf

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// section is a table of the page.
type section struct {
	title, remark string
	rows          func(*lab) []row
}

func gathered(list []source) func(*lab) []row {
	return func(l *lab) []row { return l.goBenches(list) }
}

var sections = []section{
	{"Start and memory", "The empty program imports all that zcoder imports and does nothing. Times are medians of runs in turn.", startRows},
	{"What the model reads", "Tokens are characters / 4. The server keeps what it read of the request before, as real ones do.", promptRows},
	{"Long sessions", "Sync is left out: what it costs is the disk's.", joined(gathered(sessions), roundRows)},
	{"Terminal", "", joined(terminalRows, gathered(screens))},
	{"Files and search", "The trees look like source code; the page cache is warm.", gathered(files)},
	{"Commands", "", gathered(commands)},
	{"Undo", "", gathered(undo)},
	{"Records", "", gathered(records)},
	{"Relay", "", gathered(relayed)},
	{"Remote", "", gathered(remoted)},
}

func joined(parts ...func(*lab) []row) func(*lab) []row {
	return func(l *lab) []row {
		var rows []row
		for _, part := range parts {
			rows = append(rows, part(l)...)
		}
		return rows
	}
}

// TestBench measures and writes the tables. PERF is full, which writes them into
// docs/performance.md, or quick, which prints them; PERF_ONLY is a part of a title.
func TestBench(t *testing.T) {
	mode := os.Getenv("PERF")
	if mode != "full" && mode != "quick" {
		t.Skip("`make bench` runs this, which takes about ten minutes; `make bench BENCH=quick` takes one")
	}
	where := machine("../..")
	l := newLab(t, mode == "quick")
	l.buildEmpty()
	only := os.Getenv("PERF_ONLY")
	var page strings.Builder
	var missed []string
	for _, s := range sections {
		if !strings.Contains(s.title, only) {
			continue
		}
		l.say("== %s", s.title)
		rows := s.rows(l)
		fmt.Fprintf(&page, "## %s\n\n", s.title)
		if s.remark != "" {
			fmt.Fprintf(&page, "%s\n\n", s.remark)
		}
		page.WriteString(table(rows) + "\n")
		for _, r := range rows {
			if m := r.misses(); m != "" {
				missed = append(missed, m)
			}
		}
	}
	head := fmt.Sprintf("Measured on %s in %.0f minutes by `make bench`.\n\n%s.\n\n", time.Now().Format("2 January 2006"), time.Since(l.begun).Minutes(), where)
	text := head + summary(missed) + page.String()
	if l.quick || only != "" {
		fmt.Println(text)
		return
	}
	fill(t, filepath.Join(l.root, "docs", "performance.md"), strings.TrimRight(text, "\n"))
	fmt.Println(summary(missed))
}

func summary(missed []string) string {
	if len(missed) == 0 {
		return "All goals hold.\n\n"
	}
	return "What does not hold:\n\n- " + strings.Join(missed, "\n- ") + "\n\n"
}

func fill(t *testing.T, path, text string) {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	filled, err := between(string(page), text)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(filled), 0o644); err != nil {
		t.Fatal(err)
	}
}
