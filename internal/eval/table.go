package eval

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"zcoder/internal/termtext"
)

// Table writes results as rows for people, each as soon as it comes. It is for one
// goroutine.
type Table struct {
	w     io.Writer
	width int // of the model's column
	rows  int
}

// NewTable makes a table for these models.
func NewTable(w io.Writer, models []string) *Table {
	t := &Table{w: w, width: len("model")}
	for _, m := range models {
		t.width = max(t.width, termtext.Width(termtext.Line(m)))
	}
	return t
}

// Row writes one result, under the head of the table when it is the first.
func (t *Table) Row(r Result) error {
	if t.rows == 0 {
		if _, err := fmt.Fprintf(t.w, "%-*s  %-9s %-6s %6s  %13s  %8s\n", t.width, "model", "scenario", "result", "rounds", "tokens in/out", "time"); err != nil {
			return err
		}
	}
	t.rows++
	result, why := "pass", ""
	if !r.Pass {
		result, why = "FAIL", "  "+termtext.Line(r.Why)
	}
	_, err := fmt.Fprintf(t.w, "%-*s  %-9s %-6s %6d  %6d %6d  %8s%s\n", t.width, termtext.Line(r.Model), r.Scenario, result, r.Rounds, r.Input, r.Output, short(r.Took), why)
	return err
}

// Sum writes one line for each model.
func (t *Table) Sum(results []Result) error {
	sums := map[string]*Result{}
	passed, all := map[string]int{}, map[string]int{}
	var order []string
	for _, r := range results {
		if sums[r.Model] == nil {
			sums[r.Model] = &Result{}
			order = append(order, r.Model)
		}
		sums[r.Model].Fresh += r.Fresh
		sums[r.Model].Took += r.Took
		all[r.Model]++
		if r.Pass {
			passed[r.Model]++
		}
	}
	for _, m := range order {
		if _, err := fmt.Fprintf(t.w, "%s: %d of %d passed · %d tokens · %s\n", termtext.Line(m), passed[m], all[m], sums[m].Fresh, short(sums[m].Took)); err != nil {
			return err
		}
	}
	return nil
}

func short(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%.1fs", d.Seconds())
	}
	return d.Round(time.Second).String()
}

// JSON writes one result as a line of JSON.
func JSON(w io.Writer, r Result) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(r)
}

// Failed reports whether any of the results is a failure.
func Failed(results []Result) bool {
	for _, r := range results {
		if !r.Pass {
			return true
		}
	}
	return false
}
