package openai

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"zcoder/internal/chat"
	"zcoder/internal/modelserver"
)

// wireModel is a model in the list. What it holds besides the id depends on the
// server.
type wireModel struct {
	ID      string `json:"id"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
	// vLLM and SGLang
	MaxModelLen int `json:"max_model_len"`
	// gateways
	ContextLength int `json:"context_length"`
	// llama.cpp
	Meta *struct {
		TrainedContext int   `json:"n_ctx_train"`
		Context        int   `json:"n_ctx"`
		Size           int64 `json:"size"`
	} `json:"meta"`
}

// What servers call themselves as the owner of their models.
const (
	llamaCPP = "llamacpp"
	vLLM     = "vllm"
	sgLang   = "sglang"
	lmStudio = "organization_owner"
	ollama   = "library"
)

// window is what the list tells of the model's window, in tokens; 0 for nothing.
func (m *wireModel) window() int {
	n := max(m.MaxModelLen, m.ContextLength)
	if m.Meta != nil {
		n = max(n, m.Meta.Context)
	}
	return n
}

// list asks for the models and notes what kind of server answers.
func (c *Client) list(ctx context.Context) ([]wireModel, error) {
	var list struct {
		Data *[]wireModel `json:"data"`
	}
	q := modelserver.Call{Method: http.MethodGet, Path: c.api + "models"}
	if err := c.server.Query(ctx, q, &list); err != nil {
		return nil, err
	}
	if list.Data == nil {
		return nil, c.server.BadResponse(http.StatusOK, c.server.At(q.Path)+" does not list models", nil)
	}
	for _, m := range *list.Data {
		c.kwargs.Store(m.OwnedBy == llamaCPP || m.OwnedBy == vLLM || m.OwnedBy == sgLang)
	}
	return *list.Data, nil
}

// IsOllama reports whether the server is an Ollama, which has an API of its own that
// tells more.
func (c *Client) IsOllama(ctx context.Context) bool {
	list, err := c.list(ctx)
	return err == nil && len(list) > 0 && list[0].OwnedBy == ollama
}

// Models lists the server's models in its order.
func (c *Client) Models(ctx context.Context) ([]chat.ModelInfo, error) {
	list, err := c.list(ctx)
	if err != nil {
		return nil, err
	}
	models := make([]chat.ModelInfo, 0, len(list))
	for _, m := range list {
		info := chat.ModelInfo{Name: m.ID}
		if m.Meta != nil {
			info.Size = m.Meta.Size
		}
		if m.Created > 0 {
			info.Modified = time.Unix(m.Created, 0)
		}
		models = append(models, info)
	}
	return models, nil
}

// Show returns what the server tells about one model. The API has no capabilities:
// that the model can call tools is assumed, a request shows it. A model that the
// server does not have is a *chat.Error of kind MissingModel.
func (c *Client) Show(ctx context.Context, name string) (chat.ModelFacts, error) {
	list, err := c.list(ctx)
	if noList(err) {
		return chat.ModelFacts{Tools: true, Untold: true}, nil
	}
	if err != nil {
		return chat.ModelFacts{}, err
	}
	for _, m := range list {
		if same(m.ID, name) {
			return c.facts(ctx, m), nil
		}
	}
	return chat.ModelFacts{}, c.server.APIError(http.StatusNotFound, "model '"+name+"' not found", name)
}

// noList reports whether the server has no list of models, as some gateways have
// none. Whether it is a model server at all is seen from the first request.
func noList(err error) bool {
	var e *chat.Error
	return errors.As(err, &e) && (e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed)
}

// same compares names of which one may lack the tag "latest".
func same(a, b string) bool {
	return strings.TrimSuffix(a, ":latest") == strings.TrimSuffix(b, ":latest")
}

// facts gathers what this kind of server tells beside the list. What it does not
// tell stays unknown.
func (c *Client) facts(ctx context.Context, m wireModel) chat.ModelFacts {
	f := chat.ModelFacts{Tools: true, Untold: true, FixedContext: m.window()}
	if m.Meta != nil {
		f.TrainedContext = m.Meta.TrainedContext
	}
	switch m.OwnedBy {
	case llamaCPP:
		c.props(ctx, &f)
	case lmStudio:
		c.studio(ctx, m.ID, &f)
	}
	return f
}

// props adds what llama.cpp tells: the window of a slot, and the template.
func (c *Client) props(ctx context.Context, f *chat.ModelFacts) {
	var p struct {
		Template string `json:"chat_template"`
		Settings struct {
			Context int `json:"n_ctx"`
		} `json:"default_generation_settings"`
		Modalities struct {
			Vision bool `json:"vision"`
		} `json:"modalities"`
	}
	if c.server.Query(ctx, modelserver.Call{Method: http.MethodGet, Path: c.root + "props"}, &p) != nil {
		return // an older server, or one that does not tell
	}
	f.Template, f.Vision = p.Template, p.Modalities.Vision
	if p.Settings.Context > 0 {
		f.FixedContext = p.Settings.Context
	}
}

// studio adds what LM Studio tells beside this API.
func (c *Client) studio(ctx context.Context, id string, f *chat.ModelFacts) {
	var list struct {
		Data []struct {
			ID           string `json:"id"`
			Arch         string `json:"arch"`
			Quantisation string `json:"quantization"`
			Type         string `json:"type"`
			Max          int    `json:"max_context_length"`
			Loaded       int    `json:"loaded_context_length"`
		} `json:"data"`
	}
	if c.server.Query(ctx, modelserver.Call{Method: http.MethodGet, Path: c.root + "api/v0/models"}, &list) != nil {
		return // an older server, or one that does not tell
	}
	for _, m := range list.Data {
		if m.ID == id {
			f.Family, f.Quantisation, f.Vision = m.Arch, m.Quantisation, m.Type == "vlm"
			f.TrainedContext, f.FixedContext = m.Max, m.Loaded
		}
	}
}
