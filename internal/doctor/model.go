package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"zcoder/internal/chat"
)

// smallWindow is the window, in tokens, below which little more than the prompt fits.
const smallWindow = 8192

// model checks the server, the model, its tools and its window. What needs an earlier
// one that failed is not checked.
func (s Subject) model(ctx context.Context) []Check {
	server, models := s.server(ctx)
	checks := []Check{server}
	if server.State == Fail {
		for _, name := range []string{"model", "tools", "window"} {
			checks = append(checks, Check{name, Warn, "not checked: the server does not answer", ""})
		}
		return checks
	}
	facts, err := s.Server.Show(ctx, s.Model)
	if err != nil {
		checks = append(checks, failed("model", err, "choose one with --model"))
		for _, name := range []string{"tools", "window"} {
			checks = append(checks, Check{name, Warn, "not checked: the model is not there", ""})
		}
		return checks
	}
	loaded := s.loaded(ctx)
	return append(checks, s.facts(facts, models, loaded), tools(s.Model, facts), s.window(facts, loaded))
}

// failed makes a check of an error, with its hint where it has one.
func failed(name string, err error, remedy string) Check {
	var e *chat.Error
	if errors.As(err, &e) && e.Hint != "" {
		remedy = e.Hint
	}
	return Check{name, Fail, err.Error(), remedy}
}

// server checks that there is a server that speaks the provider's API.
func (s Subject) server(ctx context.Context) (Check, []chat.ModelInfo) {
	what := "a server of the chat-completions API"
	if v, ok := s.Server.(interface {
		Version(context.Context) (string, error)
	}); ok {
		version, err := v.Version(ctx)
		if err != nil {
			return failed("server", err, "start it with `ollama serve`"), nil
		}
		what = "Ollama " + version
	}
	models, err := s.Server.Models(ctx)
	if err != nil {
		return failed("server", err, "check --host and --provider"), nil
	}
	c := Check{"server", OK, fmt.Sprintf("%s at %s, with %s", what, s.Server.BaseURL(), count(len(models), "model")), ""}
	if o, ok := s.Server.(interface {
		IsOllama(context.Context) bool
	}); ok && o.IsOllama(ctx) {
		c.State, c.Remedy = Warn, "this is an Ollama server: --provider ollama knows the model's window, and this API cuts prompts silently"
	}
	return c, models
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// loaded is the model as it is in memory, or nil.
func (s Subject) loaded(ctx context.Context) *chat.LoadedModel {
	l, ok := s.Server.(interface {
		Loaded(context.Context) ([]chat.LoadedModel, error)
	})
	if !ok {
		return nil
	}
	list, err := l.Loaded(ctx)
	if err != nil {
		return nil // what is not told is not shown
	}
	for i, m := range list {
		if same(m.Name, s.Model) {
			return &list[i]
		}
	}
	return nil
}

// same compares names of which one may lack the tag "latest".
func same(a, b string) bool {
	return strings.TrimSuffix(a, ":latest") == strings.TrimSuffix(b, ":latest")
}

// facts describes the model.
func (s Subject) facts(f chat.ModelFacts, models []chat.ModelInfo, loaded *chat.LoadedModel) Check {
	parts := []string{s.Model}
	for _, m := range models {
		if same(m.Name, s.Model) && m.Size > 0 {
			parts = append(parts, bytes(m.Size))
		}
	}
	for _, part := range []string{f.Family, f.Parameters, f.Quantisation} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	c := Check{"model", OK, "", ""}
	switch {
	case loaded != nil && loaded.Size > 0 && loaded.SizeVRAM == loaded.Size:
		parts = append(parts, "loaded, all of it on the graphics card")
	case loaded != nil && loaded.Size > 0 && loaded.SizeVRAM > 0:
		c.State = Warn
		c.Remedy = "a smaller window or model fits whole and answers much faster"
		parts = append(parts, fmt.Sprintf("loaded, %d %% of it on the graphics card", loaded.SizeVRAM*100/loaded.Size))
	case loaded != nil:
		parts = append(parts, "loaded")
	}
	c.Text = strings.Join(parts, " · ")
	return c
}

func tools(model string, f chat.ModelFacts) Check {
	switch {
	case !f.Tools:
		return Check{"tools", Fail, fmt.Sprintf("the model %q cannot call tools, so it cannot work as an agent", model), "choose one that can with --model or /model"}
	case f.Untold:
		return Check{"tools", OK, "assumed: this API does not tell what a model can do", ""}
	case f.Thinking:
		return Check{"tools", OK, "the model calls tools, and thinks", ""}
	}
	return Check{"tools", OK, "the model calls tools", ""}
}

// window compares what is asked for with what there is.
func (s Subject) window(f chat.ModelFacts, loaded *chat.LoadedModel) Check {
	now := 0
	if loaded != nil {
		now = loaded.Context
	}
	w := s.Size(f, now)
	parts := []string{fmt.Sprintf("%d tokens, %s", w.Tokens, w.Source)}
	for _, part := range []struct {
		tokens int
		text   string
	}{{now, "loaded with %d"}, {f.FixedContext, "the server was started with %d"}, {f.TrainedContext, "trained for %d"}} {
		if part.tokens > 0 {
			parts = append(parts, fmt.Sprintf(part.text, part.tokens))
		}
	}
	c := Check{"window", OK, strings.Join(parts, " · "), ""}
	switch {
	case w.Notice != "":
		c.State, c.Remedy = Warn, w.Notice
	case w.Tokens < smallWindow:
		c.State, c.Remedy = Warn, fmt.Sprintf("below %d tokens little more than the prompt fits: raise --context-window, or choose a model with a larger one", smallWindow)
	}
	return c
}

func bytes(n int64) string {
	const unit = 1000
	switch {
	case n >= unit*unit*unit:
		return fmt.Sprintf("%.1f GB", float64(n)/unit/unit/unit)
	case n >= unit*unit:
		return fmt.Sprintf("%d MB", n/unit/unit)
	}
	return fmt.Sprintf("%d kB", n/unit)
}
