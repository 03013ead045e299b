package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"zcoder/internal/agent"
	"zcoder/internal/chat"
	"zcoder/internal/ownfile"
	"zcoder/internal/sizing"
	"zcoder/tools"
)

// brain is the model in use: which one, on which server, with which window. Its
// methods may be called from several goroutines.
type brain struct {
	explicit  int    // --context-window, 0 for auto
	fallback  int    // window when nothing is known
	think     string // on, off, low, medium, high
	asked     bool   // think was set by the person
	keepAlive string
	memory    string // file that remembers windows by host and model

	mu         sync.Mutex
	lite       *tools.Registry // the small set of tools, and the prompt that fits it
	liteSystem string

	client modelServer
	model  string
	facts  map[string]chat.ModelFacts
	window map[string]sizing.Choice // by model, once chosen
	told   map[string]bool          // models whose notice was shown
	// stopWarm ends the warm-up; nil when there is none.
	stopWarm context.CancelFunc
}

// use changes server or model; empty values keep what is.
func (b *brain) use(client modelServer, model string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if client != nil {
		b.client = client
		b.facts, b.window = map[string]chat.ModelFacts{}, map[string]sizing.Choice{}
		b.told = map[string]bool{}
	}
	if model != "" {
		b.model = model
	}
}

func (b *brain) current() (modelServer, string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.client, b.model
}

// Chat sends the request to the server in use.
func (b *brain) Chat(ctx context.Context, r chat.Request, emit func(chat.Delta)) (chat.Reply, error) {
	client, _ := b.current()
	return client.Chat(ctx, r, emit)
}

// prepare finds out what a turn's requests need to say, and ends the warm-up, behind
// which they would wait. It implements agent.Config.Prepare.
func (b *brain) prepare(ctx context.Context) (agent.Setup, error) {
	b.mu.Lock()
	stop := b.stopWarm
	b.stopWarm = nil
	b.mu.Unlock()
	if stop != nil {
		stop()
	}
	setup, err := b.find(ctx)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.told[b.model] {
		setup.Notice = ""
	}
	b.told[b.model] = b.told[b.model] || err == nil
	return setup, err
}

func (b *brain) find(ctx context.Context) (agent.Setup, error) {
	facts, err := b.known(ctx)
	if err != nil {
		return agent.Setup{}, err
	}
	client, model := b.current()
	if !facts.Tools {
		return agent.Setup{}, &chat.Error{
			Kind: chat.NoTools, Text: fmt.Sprintf("the model %q cannot call tools, so it cannot work as an agent", model),
			Hint: "choose one that can with /model or --model; `ollama show NAME` lists \"tools\" among the capabilities",
		}
	}
	loaded := b.loaded(ctx, client, model)
	choice := b.choose(facts, loaded)
	setup := agent.Setup{
		Window: choice.Tokens, Loaded: loaded == choice.Tokens || facts.Untold,
		Think: b.thinkWord(b.think, facts), NoThink: b.thinkWord("off", facts), KeepThinking: facts.ThinkLevels,
	}
	setup.Notice = choice.Notice
	if choice.Tokens > 0 && choice.Tokens < sizing.LiteBelow {
		setup.Tools, setup.System = b.small()
		setup.Notice = strings.TrimPrefix(setup.Notice+"; ", "; ") + fmt.Sprintf("with a window of %d tokens the small set of tools is used", choice.Tokens)
	}
	return setup, nil
}

// setSmall sets what is used with a small window.
func (b *brain) setSmall(lite *tools.Registry, system string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lite, b.liteSystem = lite, system
}

func (b *brain) small() (*tools.Registry, string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lite, b.liteSystem
}

// known asks the server for the facts about the model, once.
func (b *brain) known(ctx context.Context) (chat.ModelFacts, error) {
	b.mu.Lock()
	client, model := b.client, b.model
	facts, ok := b.facts[model]
	b.mu.Unlock()
	if ok {
		return facts, nil
	}
	facts, err := client.Show(ctx, model)
	if err != nil {
		return facts, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.facts[model] = facts
	return facts, nil
}

// loaded is the window that the model is loaded with, 0 when it is not loaded or the
// server does not say.
func (b *brain) loaded(ctx context.Context, client modelServer, model string) int {
	m, _ := loadedModel(ctx, client, model)
	return m.Context
}

// sameModel compares names of which one may lack the tag "latest".
func sameModel(a, b string) bool {
	return strings.TrimSuffix(a, ":latest") == strings.TrimSuffix(b, ":latest")
}

// choose settles the window of this model for the life of the program, so that no
// request makes the server load it again.
func (b *brain) choose(facts chat.ModelFacts, loaded int) sizing.Choice {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c, ok := b.window[b.model]; ok {
		return c
	}
	c := b.sized(facts, loaded)
	b.window[b.model] = c
	if b.explicit == 0 {
		b.remember(c.Tokens)
	}
	return c
}

// sized applies the rules for the window.
func (b *brain) sized(facts chat.ModelFacts, loaded int) sizing.Choice {
	if facts.FixedContext > 0 {
		return sizing.Fixed(b.explicit, facts.FixedContext)
	}
	c := sizing.Choose(sizing.Facts{
		Explicit: b.explicit, Loaded: loaded, Trained: facts.TrainedContext,
		Remembered: b.remembered()[b.key()], Default: b.fallback,
	})
	if facts.Untold && b.explicit == 0 {
		c.Notice = fmt.Sprintf("the server does not tell its window: %d tokens are assumed; --context-window says what it has", c.Tokens)
	}
	return c
}

func (b *brain) key() string { return b.client.BaseURL() + " " + b.model }

// remembered reads the windows that were used before. A file that cannot be read
// counts as empty: it is only a memory.
func (b *brain) remembered() map[string]int {
	windows := map[string]int{}
	data, err := os.ReadFile(b.memory)
	if err != nil || json.Unmarshal(data, &windows) != nil {
		return map[string]int{}
	}
	return windows
}

// remember stores the window for the next start. Failing to costs only the memory.
func (b *brain) remember(tokens int) {
	windows := b.remembered()
	if windows[b.key()] == tokens {
		return
	}
	windows[b.key()] = tokens
	data, err := json.MarshalIndent(windows, "", "  ")
	if err == nil {
		_ = ownfile.Replace(b.memory, append(data, '\n'), 0o600)
	}
}

// thinkWord is what a request says about thinking: nothing to a model that cannot, and
// to one of which nothing is known only what the person asked for.
func (b *brain) thinkWord(wanted string, facts chat.ModelFacts) string {
	switch {
	case facts.Untold && b.asked:
		return wanted
	case !facts.Thinking:
		return ""
	case facts.ThinkLevels && wanted == "off":
		return "low"
	case facts.ThinkLevels && (wanted == "on" || wanted == ""):
		return "medium"
	case facts.ThinkLevels:
		return wanted
	case wanted == "off":
		return "off"
	}
	return "on"
}

// able lists the server's models that can call tools.
func able(ctx context.Context, client modelServer) ([]chat.ModelInfo, error) {
	all, err := client.Models(ctx)
	if err != nil {
		return nil, err
	}
	var list []chat.ModelInfo
	for _, m := range all {
		if facts, err := client.Show(ctx, m.Name); err == nil && facts.Tools {
			list = append(list, m)
		}
	}
	return list, nil
}

func modelNames(list []chat.ModelInfo) string {
	names := make([]string, len(list))
	for i, m := range list {
		names[i] = m.Name
	}
	return strings.Join(names, ", ")
}

// missing reports whether the error says that the server does not have the model.
func missing(err error) bool {
	var failure *chat.Error
	return errors.As(err, &failure) && failure.Kind == chat.MissingModel
}

// source says where the window's size comes from.
func (b *brain) source() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.window[b.model].Source
}

// warming notes how to end the warm-up: a turn that starts meanwhile does.
func (b *brain) warming(cancel context.CancelFunc) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopWarm = cancel
}

// warm loads the model with the stable prefix, and blocks until it is there.
func (b *brain) warm(ctx context.Context, r chat.Request) error {
	setup, err := b.find(ctx)
	if err != nil {
		return err
	}
	client, model := b.current()
	r.Model, r.NumCtx, r.KeepAlive, r.NumPredict, r.Think = model, setup.Window, b.keepAlive, 1, setup.NoThink
	if setup.Tools != nil {
		r.Tools = setup.Tools.Specs()
		r.Messages[0].Content = setup.System
	}
	_, err = client.Chat(ctx, r, func(chat.Delta) {})
	return err
}
