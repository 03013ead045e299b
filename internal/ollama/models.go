package ollama

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"zcoder/internal/chat"
	"zcoder/internal/modelserver"
	"zcoder/internal/modeltext"
)

type wireDetails struct {
	Family        string `json:"family"`
	ParameterSize string `json:"parameter_size"`
	Quantisation  string `json:"quantization_level"`
}

// Version returns the server's version. Builds from source say "0.0.0".
func (c *Client) Version(ctx context.Context) (string, error) {
	var v struct {
		Version *string `json:"version"`
	}
	if err := c.server.Query(ctx, modelserver.Call{Method: http.MethodGet, Path: "/api/version"}, &v); err != nil {
		return "", err
	}
	if v.Version == nil {
		return "", c.server.BadResponse(http.StatusOK, c.BaseURL()+" does not tell a version", nil)
	}
	return *v.Version, nil
}

// Models lists the installed models in the server's order, the newest first.
func (c *Client) Models(ctx context.Context) ([]chat.ModelInfo, error) {
	var list struct {
		Models []struct {
			Name     string      `json:"name"`
			Model    string      `json:"model"`
			Size     int64       `json:"size"`
			Modified string      `json:"modified_at"`
			Details  wireDetails `json:"details"`
		} `json:"models"`
	}
	if err := c.server.Query(ctx, modelserver.Call{Method: http.MethodGet, Path: "/api/tags"}, &list); err != nil {
		return nil, err
	}
	models := make([]chat.ModelInfo, 0, len(list.Models))
	for _, m := range list.Models {
		name := m.Name
		if name == "" {
			name = m.Model
		}
		models = append(models, chat.ModelInfo{Name: name, Size: m.Size, Family: m.Details.Family, Parameters: m.Details.ParameterSize,
			Quantisation: m.Details.Quantisation, Modified: parseTime(m.Modified)})
	}
	return models, nil
}

// Loaded lists the models in memory. Two names of one model may show as one.
func (c *Client) Loaded(ctx context.Context) ([]chat.LoadedModel, error) {
	var list struct {
		Models []struct {
			Name     string `json:"name"`
			Context  int    `json:"context_length"`
			Size     int64  `json:"size"`
			SizeVRAM int64  `json:"size_vram"`
			Expires  string `json:"expires_at"`
		} `json:"models"`
	}
	if err := c.server.Query(ctx, modelserver.Call{Method: http.MethodGet, Path: "/api/ps"}, &list); err != nil {
		return nil, err
	}
	models := make([]chat.LoadedModel, 0, len(list.Models))
	for _, m := range list.Models {
		models = append(models, chat.LoadedModel{Name: m.Name, Context: m.Context, Size: m.Size, SizeVRAM: m.SizeVRAM, Expires: parseTime(m.Expires)})
	}
	return models, nil
}

// parseTime reads a time of the server; one that cannot be read is zero.
func parseTime(text string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}
	}
	return t
}

// wireShow is the answer about one model.
type wireShow struct {
	Parameters   string                     `json:"parameters"`
	Template     string                     `json:"template"`
	Renderer     string                     `json:"renderer"`
	Parser       string                     `json:"parser"`
	Details      wireDetails                `json:"details"`
	ModelInfo    map[string]json.RawMessage `json:"model_info"`
	Capabilities *[]string                  `json:"capabilities"`
	RemoteHost   string                     `json:"remote_host"`
}

// Show returns the facts about one model. A model that the server does not have is
// a *chat.Error of kind MissingModel.
func (c *Client) Show(ctx context.Context, name string) (chat.ModelFacts, error) {
	var w wireShow
	body := append(modeltext.AppendString([]byte(`{"model":`), name), '}')
	if err := c.server.Query(ctx, modelserver.Call{Method: http.MethodPost, Path: "/api/show", Body: body, Model: name}, &w); err != nil {
		return chat.ModelFacts{}, err
	}
	f := chat.ModelFacts{Known: w.Capabilities != nil, Family: w.Details.Family, Parameters: w.Details.ParameterSize,
		Quantisation: w.Details.Quantisation, Template: w.Template, Renderer: w.Renderer, Parser: w.Parser, Remote: w.RemoteHost != ""}
	f.ShowsThinking = strings.Contains(w.Template, ".Thinking")
	if f.Known {
		f.Tools, f.Thinking, f.Vision = slices.Contains(*w.Capabilities, "tools"),
			slices.Contains(*w.Capabilities, "thinking"), slices.Contains(*w.Capabilities, "vision")
	} else {
		f.Tools, f.Thinking = strings.Contains(w.Template, ".Tools"), f.ShowsThinking
	}
	arch := w.text("general.architecture")
	f.ThinkLevels = f.Thinking && (isLevelled(f.Family) || isLevelled(arch) || w.Parser == "harmony")
	f.TrainedContext = w.number(arch + ".context_length")
	f.NumCtx = parameter(w.Parameters, "num_ctx")
	f.CacheBytesPerToken = w.cacheBytes(arch)
	return f, nil
}

// isLevelled recognises the family that thinks in levels.
func isLevelled(family string) bool { return family == "gptoss" || family == "gpt-oss" }

func (w *wireShow) text(key string) string {
	var s string
	_ = json.Unmarshal(w.ModelInfo[key], &s) // what is not there is empty
	return s
}

func (w *wireShow) number(key string) int {
	var f float64
	_ = json.Unmarshal(w.ModelInfo[key], &f) // what is not there is zero
	return int(f)
}

// cacheBytes estimates keys and values of one token over all layers.
func (w *wireShow) cacheBytes(arch string) int64 {
	heads, layers := w.number(arch+".attention.head_count_kv"), w.number(arch+".block_count")
	width := w.number(arch + ".attention.key_length")
	if all := w.number(arch + ".attention.head_count"); width == 0 && all > 0 {
		width = w.number(arch+".embedding_length") / all
	}
	total := int64(heads) * int64(layers)
	var perLayer []int64
	if json.Unmarshal(w.ModelInfo[arch+".attention.head_count_kv"], &perLayer) == nil {
		for _, n := range perLayer {
			total += n
		}
	}
	const keysAndValues, bytesEach = 2, 2
	return total * int64(width) * keysAndValues * bytesEach
}

// parameter reads a number from the text of a model's parameters.
func parameter(text, name string) int {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == name {
			n, _ := strconv.Atoi(f[1]) // a strange value is as good as none
			return n
		}
	}
	return 0
}

// Load loads a model with a window of numCtx tokens (0: the server's choice) and
// returns when it is ready, however long that takes. keepAlive is as in
// chat.Request.
func (c *Client) Load(ctx context.Context, name, keepAlive string, numCtx int) error {
	b := modeltext.AppendString([]byte(`{"model":`), name)
	b = appendKeepAlive(b, keepAlive)
	b = appendOptions(b, chat.Request{NumCtx: numCtx})
	b = append(b, `,"messages":[]}`...)
	_, err := c.server.Fetch(ctx, c.server.Patient("/api/chat", b, "application/json", name))
	return err
}

// Unload frees a model's memory. It is no error if the model was not loaded.
func (c *Client) Unload(ctx context.Context, name string) error {
	b := append(modeltext.AppendString([]byte(`{"model":`), name), `,"messages":[],"keep_alive":0}`...)
	var done struct{}
	return c.server.Query(ctx, modelserver.Call{Method: http.MethodPost, Path: "/api/chat", Body: b, Model: name}, &done)
}
