package chat

import "time"

// ModelInfo is a model that a server has, as a list shows it.
type ModelInfo struct {
	Name         string // with its tag
	Size         int64  // bytes on disk; 0 for one that runs elsewhere, or unknown
	Family       string
	Parameters   string // such as "30.5B"
	Quantisation string // such as "Q4_K_M"
	Modified     time.Time
}

// ModelFacts are what a server knows about one model.
type ModelFacts struct {
	// Known is false when the server does not tell capabilities; then the next
	// three were read from the template, or assumed.
	Known                   bool
	Tools, Thinking, Vision bool
	// Untold says that nothing is known of thinking: it may be asked for.
	Untold bool
	// ThinkLevels says that thinking is set as low, medium or high, not on or off.
	ThinkLevels bool
	// ShowsThinking says that the template shows the model its earlier thinking.
	ShowsThinking bool
	// TrainedContext is the model's own limit in tokens, 0 if unknown.
	TrainedContext int
	// FixedContext is the window in tokens that the server was started with and no
	// request can change; 0 when requests choose, or unknown.
	FixedContext int
	// NumCtx is the window that the model's file sets, 0 for none.
	NumCtx int
	// CacheBytesPerToken estimates the memory that one token of context takes, with
	// 16-bit values; 0 if unknown.
	CacheBytesPerToken int64

	Family, Parameters, Quantisation string
	Template, Renderer, Parser       string // how the server makes prompts and reads calls
	Remote                           bool   // it runs on another host than the server's
}

// LoadedModel is a model in the server's memory.
type LoadedModel struct {
	Name     string
	Context  int   // the window it is loaded with, in tokens
	Size     int64 // bytes
	SizeVRAM int64 // bytes of Size that are on a graphics card
	Expires  time.Time
}

// PullProgress is the state of a download.
type PullProgress struct {
	Status string // the server's word for the step; one line, not sanitised
	// Completed and Total are bytes over all parts that were announced so far;
	// both are 0 while nothing is known.
	Completed, Total int64
}
