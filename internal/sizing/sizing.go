// Package sizing chooses the context window that every request of a session names,
// so that the server never reloads the model and never cuts the prompt.
//
// It knows the rules and the numbers; it asks no server and keeps no file. App
// gathers the facts.
package sizing

import "fmt"

const (
	// Floor is the smallest window, in tokens, in which the agent can work: the
	// prompt, the tools and one file.
	Floor = 8192
	// Fallback is the window when nothing is known: it fits most machines.
	Fallback = 16384
	// LiteBelow is the window, in tokens, below which the small set of tools is used.
	LiteBelow = 16384
)

// Facts are what is known of a model on a server, in tokens; zero is unknown.
type Facts struct {
	Explicit   int // the person's setting
	Loaded     int // what the running model has
	Remembered int // what worked for this model on this host before
	Trained    int // the model's own limit
	Default    int // when nothing else is known; zero is Fallback
}

// Choice is the window to ask for.
type Choice struct {
	Tokens int
	Source string // in plain words, for `/context`
	Notice string // something the person should know, or ""
}

// Choose applies the rules in order: the person's word, the loaded window, what was
// remembered, the fallback; never above what the model was trained for.
func Choose(f Facts) Choice {
	switch {
	case f.Explicit > 0:
		return explicit(f)
	case f.Loaded >= min(Floor, limit(f)):
		return Choice{Tokens: f.Loaded, Source: "as the model is loaded"}
	}
	fallback := f.Default
	if fallback <= 0 {
		fallback = Fallback
	}
	c := Choice{Tokens: min(fallback, limit(f)), Source: "the default"}
	if f.Remembered >= min(Floor, limit(f)) {
		c = Choice{Tokens: min(f.Remembered, limit(f)), Source: "as it was used before"}
	}
	if f.Loaded > 0 {
		c.Notice = fmt.Sprintf("the model is loaded with a window of only %d tokens: asking for %d, which loads it again once", f.Loaded, c.Tokens)
	}
	return c
}

// Fixed is the choice for a server whose window no request can change: the window it
// was started with, or less where the person wants less.
func Fixed(explicit, window int) Choice {
	c := Choice{Tokens: window, Source: "as the server was started"}
	switch {
	case explicit > window:
		c.Notice = fmt.Sprintf("the server was started with a window of %d tokens, so %d are used instead of %d", window, window, explicit)
	case explicit > 0:
		c.Tokens, c.Source = explicit, "as you set it"
	case window < Floor:
		c.Notice = fmt.Sprintf("the server was started with a window of only %d tokens: below %d little more than the prompt fits", window, Floor)
	}
	return c
}

func explicit(f Facts) Choice {
	c := Choice{Tokens: f.Explicit, Source: "as you set it"}
	switch {
	case f.Trained > 0 && f.Explicit > f.Trained:
		c.Tokens = f.Trained
		c.Notice = fmt.Sprintf("the model was trained for %d tokens, so %d are used instead of %d", f.Trained, f.Trained, f.Explicit)
	case f.Explicit < Floor:
		c.Notice = fmt.Sprintf("a window of %d tokens is very small: below %d little more than the prompt fits", f.Explicit, Floor)
	}
	return c
}

// limit is the model's own limit, or one that never binds.
func limit(f Facts) int {
	if f.Trained > 0 {
		return f.Trained
	}
	return 1 << 30
}

// Growth is what decides whether a window is raised while nothing else happens.
type Growth struct {
	Window        int   // tokens now
	Used          int   // tokens of the last request
	Trained       int   // the model's own limit
	BytesPerToken int64 // memory that a token of context takes; 0 unknown
	Free          int64 // memory that the server's machine has left, in bytes; 0 unknown
}

// Raise returns a larger window for a conversation that fills more than half of its
// own, if the model and the memory allow it: twice as large, at most the model's
// limit, and taking at most half of the free memory. What is unknown allows nothing.
func Raise(g Growth) (tokens int, ok bool) {
	tokens = min(2*g.Window, g.Trained)
	extra := int64(tokens-g.Window) * g.BytesPerToken
	if g.Window <= 0 || g.Used*2 <= g.Window || tokens <= g.Window || extra <= 0 || extra > g.Free/2 {
		return 0, false
	}
	return tokens, true
}
