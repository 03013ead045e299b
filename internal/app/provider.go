package app

import (
	"cmp"
	"context"

	"zcoder/internal/chat"
	"zcoder/internal/config"
	"zcoder/internal/modelserver"
	"zcoder/internal/ollama"
	"zcoder/internal/openai"
)

// modelServer is what the program needs of a provider's client.
type modelServer interface {
	Chat(ctx context.Context, r chat.Request, emit func(chat.Delta)) (chat.Reply, error)
	Models(ctx context.Context) ([]chat.ModelInfo, error)
	Show(ctx context.Context, name string) (chat.ModelFacts, error)
	BaseURL() string
}

// What only some providers can do.
type (
	loader interface {
		Loaded(ctx context.Context) ([]chat.LoadedModel, error)
	}
	unloader interface {
		Unload(ctx context.Context, name string) error
	}
	puller interface {
		Pull(ctx context.Context, name string, progress func(chat.PullProgress)) error
	}
)

// newClient makes the client of a server, in the API that the settings name.
func (w *workbench) newClient(host string) (modelServer, error) {
	debug, err := w.debug()
	if err != nil {
		return nil, err
	}
	return dialServer(w.v, host, debug)
}

func dialServer(v *config.Values, host string, debug func(kind, text string)) (modelServer, error) {
	o := modelserver.Options{
		Host: host, APIKey: apiKey(v),
		FirstByteTimeout: v.Duration("first-byte-timeout"), IdleTimeout: v.Duration("http-read-timeout"),
		Retries: v.Int("transport-retry-limit"), UserAgent: "zcoder/" + version, NewID: newCallID, Debug: debug,
	}
	var client modelServer
	var err error
	if v.String("provider") == "openai" {
		client, err = openai.New(o)
	} else {
		client, err = ollama.New(o)
	}
	if err != nil {
		return nil, &config.UsageError{Text: err.Error(), Hints: []string{"OLLAMA_HOST and --host take host, host:port or a URL"}}
	}
	return client, nil
}

// apiKey is the key for the server: one that was meant for another provider is none.
func apiKey(v *config.Values) string {
	return cmp.Or(v.String("api-key"), v.String(v.String("provider")+"-api-key"))
}
