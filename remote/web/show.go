package web

import (
	"fmt"
	"strings"

	"zcoder/internal/event"
	"zcoder/internal/termtext"
)

// fact is something that a person must know of a question beside its text.
type fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// shown is a question as a person reads it: all of it, with everything named that hides
// or reorders. The exact text is in the question itself.
type shown struct {
	Facts []fact   `json:"facts"`
	Lines []string `json:"lines"` // of the request; the page numbers them
	Notes []string `json:"notes"`
}

// Show returns what the page shows of a question, as a value for JSON.
func (p *Page) Show(q event.Question) any {
	tool := termtext.Line(q.Tool)
	if q.Effect != "" {
		tool += " (" + termtext.Line(q.Effect) + ")"
	}
	facts := []fact{
		{"tool", tool}, {"shell", argv(q.Shell)}, {"dir", termtext.Line(q.Dir)},
		{"limit", termtext.Line(q.Timeout)}, {"asked by", termtext.Line(q.Origin)},
	}
	for _, reason := range q.Reasons {
		facts = append(facts, fact{"because", termtext.Line(reason)})
	}
	s := shown{Facts: []fact{}, Lines: strings.Split(termtext.MarkBlanks(termtext.Safe(q.Text)), "\n"), Notes: []string{}}
	for _, f := range facts {
		if f.Value != "" {
			s.Facts = append(s.Facts, f)
		}
	}
	if strings.TrimSpace(q.Text) == "" {
		s.Notes = append(s.Notes, "the text is empty")
	}
	for _, note := range q.Notes {
		s.Notes = append(s.Notes, termtext.Line(note))
	}
	for _, h := range termtext.HiddenIn(q.Text) {
		s.Notes = append(s.Notes, fmt.Sprintf("hidden characters: %s (%d×)", h.Name, h.Count))
	}
	return s
}

// argv shows a program and its arguments.
func argv(words []string) string {
	shown := make([]string, len(words))
	for i, w := range words {
		shown[i] = termtext.Line(w)
		if w == "" || strings.ContainsAny(w, " \t\n'\"\\") {
			shown[i] = "'" + shown[i] + "'"
		}
	}
	return strings.Join(shown, " ")
}
