package policy

import (
	"zcoder/internal/approval"
)

// Explanation is a verdict with the way that led to it, for `zcoder policy test`.
type Explanation struct {
	Verdict approval.Verdict
	// Steps are what was considered, in order; the last one is the verdict.
	Steps []Step
}

// Step is one rule or stage and what came of it.
type Step struct {
	Rule    string
	Outcome string
}

// Explain judges a request like Judge and keeps each step.
func (p *Policy) Explain(r approval.Request) Explanation {
	var e Explanation
	e.Verdict = p.judge(r, func(rule, outcome string) {
		e.Steps = append(e.Steps, Step{Rule: rule, Outcome: outcome})
	})
	return e
}
