// Package eval asks real models to do small, well-defined pieces of work and judges
// what came of it by files, exit statuses and answers, so that a person can choose a
// model and a regression shows.
//
// It knows the scenarios, which are embedded, and how to judge them. How a model is
// asked comes in as a function; the whole program is behind it, loop, tools, gate and
// session. App is the only caller.
package eval

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"zcoder/internal/event"
)

// Job is one scenario for one model, ready to be asked.
type Job struct {
	Model  string
	Prompt string
	Dir    string   // the workspace, made for this job alone
	Home   string   // an empty directory for settings and records
	Allow  []string // the beginnings of the commands that may run; all others are refused
	Rounds int      // the most replies
	Limit  time.Duration
}

// Outcome is what came of a job.
type Outcome struct {
	End    event.End
	Answer string // the text of the last reply
}

// Options say what is run. All but Report are required.
type Options struct {
	Models    []string
	Scenarios []Scenario
	// Ask has the model do the job. Its error means that nothing could be asked, not
	// that the model did badly.
	Ask   func(ctx context.Context, j Job) (Outcome, error)
	Limit time.Duration // of one scenario; 0 is none
	Temp  string        // where the directories of the jobs are made; "" is the system's place
	Now   func() time.Time
	// Report gets each result as soon as it is there.
	Report func(Result) error
}

// Result is the judgement of one scenario for one model.
type Result struct {
	Model    string `json:"model"`
	Scenario string `json:"scenario"`
	Pass     bool   `json:"pass"`
	// Why says what was wrong; not sanitised.
	Why    string        `json:"why,omitempty"`
	Reason event.Reason  `json:"reason,omitempty"` // how the turn ended
	Rounds int           `json:"rounds"`
	Input  int           `json:"prompt_tokens"` // of the last request
	Output int           `json:"output_tokens"` // of the whole turn
	Fresh  int           `json:"fresh_tokens"`  // written, or read for the first time
	Took   time.Duration `json:"-"`
	TookMS int64         `json:"took_ms"`
	Answer string        `json:"answer,omitempty"`
}

// Run does the scenarios one after the other, each in directories of its own that are
// removed afterwards. It returns what was done when ctx ends, with ctx's error.
func Run(ctx context.Context, o Options) ([]Result, error) {
	var results []Result
	for _, model := range o.Models {
		for _, s := range o.Scenarios {
			r, err := o.one(ctx, model, s)
			if ctx.Err() != nil {
				return results, ctx.Err()
			}
			if err != nil {
				return results, fmt.Errorf("run scenario %q with %q: %w", s.Name, model, err)
			}
			results = append(results, r)
			if o.Report != nil {
				if err := o.Report(r); err != nil {
					return results, err
				}
			}
		}
	}
	return results, nil
}

// one does one scenario.
func (o Options) one(ctx context.Context, model string, s Scenario) (result Result, err error) {
	scratch, err := os.MkdirTemp(o.Temp, "zcoder-eval-")
	if err != nil {
		return Result{}, fmt.Errorf("make a place for it: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	j := Job{Model: model, Prompt: s.Prompt, Dir: filepath.Join(scratch, "work"), Home: filepath.Join(scratch, "home"), Allow: s.Allow, Rounds: s.Rounds, Limit: o.Limit}
	if err := errors.Join(os.Mkdir(j.Dir, 0o700), os.Mkdir(j.Home, 0o700), s.unpack(j.Dir)); err != nil {
		return Result{}, err
	}
	start := o.Now()
	out, err := o.Ask(ctx, j)
	r := Result{Model: model, Scenario: s.Name, Reason: out.End.Reason, Rounds: out.End.Rounds, Answer: out.Answer,
		Input: out.End.PromptTokens, Output: out.End.OutputTokens, Fresh: out.End.FreshTokens, Took: o.Now().Sub(start)}
	r.TookMS = r.Took.Milliseconds()
	if err != nil {
		return r, err
	}
	r.Why, err = s.judge(j.Dir, out)
	r.Pass = r.Why == ""
	return r, err
}
