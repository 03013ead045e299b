// Package scripted is a model server that speaks Ollama's API and the chat-completions
// API from a script: it plays prepared replies, one for each chat request, and records
// what was asked.
//
// It knows the script's notation, the shape of the servers' answers and a simulated
// prefix cache; it knows no client, tool or session and imports nothing of ours.
// Tests call it, and `zcoder --demo` runs it inside the binary.
//
// # Notation
//
// A script is text. Lines beginning with "#" are comments. A directive is a line
// "> verb rest"; lines that begin with "|" right after it continue its text, each
// on a line of its own ("| text", or "|" for an empty line). Directives that stand
// together are a block; a blank line or a line "---" ends it. Each block is one
// reply, played in order, except blocks of settings.
//
// In a reply:
//
//	say TEXT          visible text, streamed word by word
//	think TEXT        thinking, streamed word by word
//	call NAME {JSON}  one tool call, in a record of its own
//	raw JSON          one record of the stream, exactly as it stands
//	error TEXT        an error line in mid-stream; ends the reply
//	status N BODY     an answer with this HTTP status; ends the reply
//	close             the connection is cut here
//	eof               the stream ends cleanly here, without a last record
//	hang              nothing more comes until the client leaves
//	pause 100ms       silence
//	done REASON       the reason in the last record (default "stop")
//	usage IN OUT      the token counts in the last record
//	expect TEXT       the request must contain TEXT
//	expect-not TEXT   the request must not contain TEXT
//	expect-last TEXT  its last message must contain TEXT
//	if TEXT           skip this reply unless the last message contains TEXT
//	unless TEXT       skip this reply if the last message contains TEXT
//
// Settings, in blocks of their own:
//
//	model NAME [tools] [thinking] [vision] [notools] [ctx=N] [num_ctx=N] [family=F]
//	           [size=BYTES] [params=30B] [quant=Q4_K_M] [renderer=R] [parser=P]
//	no-models                 the server has no model
//	pullable NAME [as model] [pause=1s]
//	                          POST /api/pull finds it; the pause is before each quarter
//	loaded NAME ctx=N         what /api/ps shows at the start
//	version TEXT              what /api/version says
//	server llamacpp           what the /v1 side is like: llamacpp or vllm, which tell
//	                          their window and refuse what does not fit; else Ollama
//
// Without a model the script has "test-model:latest", which calls tools and was
// trained for 32768 tokens.
package scripted

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Script is a parsed script. It is immutable and may be used by several servers.
type Script struct {
	replies  []reply
	models   []model
	pullable []model
	loaded   []loadedModel
	version  string
	kind     string // llamacpp, vllm or ""
}

// step is one directive of a reply.
type step struct {
	verb  string
	text  string        // the rest, continuation lines included
	name  string        // call: the tool
	code  int           // status
	pause time.Duration // pause
	in    int           // usage
	out   int           // usage
}

// reply is one block.
type reply struct {
	line  int // of its first directive, for messages
	steps []step
}

type model struct {
	name             string
	tools            bool
	thinking         bool
	vision           bool
	trained          int
	numCtx           int
	family           string
	size             int64
	params, quant    string
	renderer, parser string
	pause            time.Duration // while it is pulled
}

type loadedModel struct {
	name string
	ctx  int
}

const defaultTrained = 32768 // tokens; a usual trained context of small models

// Parse reads a script. Its errors name the line.
func Parse(text string) (*Script, error) {
	p := parser{script: &Script{version: "0.17.4"}}
	for i, line := range strings.Split(text, "\n") {
		if err := p.line(i+1, strings.TrimSuffix(line, "\r")); err != nil {
			return nil, err
		}
	}
	if err := p.endBlock(); err != nil {
		return nil, err
	}
	if len(p.script.models) == 0 && !p.noModels {
		p.script.models = []model{newModel("test-model")}
	}
	return p.script, nil
}

// parser collects the directives of one block at a time.
type parser struct {
	script   *Script
	block    []directive
	noModels bool
}

type directive struct {
	line       int
	verb, text string
}

func (p *parser) line(n int, line string) error {
	switch {
	case strings.HasPrefix(line, ">"):
		verb, text, _ := strings.Cut(strings.TrimPrefix(line[1:], " "), " ")
		if verb == "" {
			return fmt.Errorf("script line %d: a directive without a verb", n)
		}
		p.block = append(p.block, directive{n, verb, text})
	case strings.HasPrefix(line, "|"):
		if len(p.block) == 0 {
			return fmt.Errorf("script line %d: a continuation line without a directive before it", n)
		}
		last := &p.block[len(p.block)-1]
		last.text += "\n" + strings.TrimPrefix(line[1:], " ")
	case strings.HasPrefix(line, "#"):
	case strings.TrimSpace(line) == "", line == "---":
		return p.endBlock()
	default:
		return fmt.Errorf("script line %d: expected a line beginning with \">\", \"|\" or \"#\", got %q", n, line)
	}
	return nil
}

func (p *parser) endBlock() error {
	if len(p.block) == 0 {
		return nil
	}
	block := p.block
	p.block = nil
	settings := 0
	r := reply{line: block[0].line}
	for _, d := range block {
		known, err := p.setting(d)
		if err != nil {
			return fmt.Errorf("script line %d: %s: %w", d.line, d.verb, err)
		}
		if known {
			settings++
			continue
		}
		s, err := parseStep(d)
		if err != nil {
			return fmt.Errorf("script line %d: %s: %w", d.line, d.verb, err)
		}
		r.steps = append(r.steps, s)
	}
	if settings > 0 && len(r.steps) > 0 {
		return fmt.Errorf("script line %d: settings and a reply in one block: put a blank line between them", r.line)
	}
	if len(r.steps) == 0 {
		return nil
	}
	if err := r.check(); err != nil {
		return fmt.Errorf("script line %d: %w", r.line, err)
	}
	p.script.replies = append(p.script.replies, r)
	return nil
}

// check refuses an order of steps that could not be played.
func (r reply) check() error {
	ended, written := "", false
	for _, s := range r.steps {
		if ended != "" {
			return fmt.Errorf("%q after %q, which ends the reply", s.verb, ended)
		}
		switch s.verb {
		case "status":
			if written {
				return fmt.Errorf("status after the stream began")
			}
			ended = s.verb
		case "error", "close", "eof", "hang":
			ended = s.verb
		case "say", "think", "call", "raw":
			written = true
		}
	}
	return nil
}

// setting reads a directive that is about the server. It reports whether it was one.
func (p *parser) setting(d directive) (bool, error) {
	switch d.verb {
	case "model":
		m, err := parseModel(d.text)
		p.script.models = append(p.script.models, m)
		return true, err
	case "pullable":
		m, err := parseModel(d.text)
		p.script.pullable = append(p.script.pullable, m)
		return true, err
	case "no-models":
		p.noModels = true
		return true, nil
	case "version":
		p.script.version = d.text
		return true, nil
	case "server":
		if d.text != "llamacpp" && d.text != "vllm" {
			return true, fmt.Errorf("expected llamacpp or vllm, got %q", d.text)
		}
		p.script.kind = d.text
		return true, nil
	case "loaded":
		name, rest, _ := strings.Cut(d.text, " ")
		n, err := strconv.Atoi(strings.TrimPrefix(rest, "ctx="))
		if err != nil || name == "" {
			return true, fmt.Errorf("expected NAME ctx=N, got %q", d.text)
		}
		p.script.loaded = append(p.script.loaded, loadedModel{withTag(name), n})
		return true, nil
	}
	return false, nil
}

func newModel(name string) model {
	return model{name: withTag(name), tools: true, trained: defaultTrained, family: "llama",
		size: 4_000_000_000, params: "7B", quant: "Q4_K_M"}
}

func parseModel(text string) (model, error) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return model{}, fmt.Errorf("expected a name")
	}
	m := newModel(words[0])
	for _, w := range words[1:] {
		if err := m.set(w); err != nil {
			return m, err
		}
	}
	return m, nil
}

func (m *model) set(word string) (err error) {
	key, value, _ := strings.Cut(word, "=")
	switch key {
	case "tools":
		m.tools = true
	case "notools":
		m.tools = false
	case "thinking":
		m.thinking = true
	case "vision":
		m.vision = true
	case "ctx":
		m.trained, err = strconv.Atoi(value)
	case "num_ctx":
		m.numCtx, err = strconv.Atoi(value)
	case "size":
		m.size, err = strconv.ParseInt(value, 10, 64)
	case "family":
		m.family = value
	case "params":
		m.params = value
	case "quant":
		m.quant = value
	case "renderer":
		m.renderer = value
	case "parser":
		m.parser = value
	case "pause":
		m.pause, err = time.ParseDuration(value)
	default:
		return fmt.Errorf("unknown attribute %q", word)
	}
	return err
}

// parseStep reads a directive that belongs to a reply.
func parseStep(d directive) (step, error) {
	s := step{verb: d.verb, text: d.text}
	var err error
	switch d.verb {
	case "say", "think", "error", "expect", "expect-not", "expect-last", "if", "unless":
	case "raw":
		if strings.Contains(s.text, "\n") {
			return s, fmt.Errorf("a stream line is one line")
		}
	case "call":
		s.name, s.text, _ = strings.Cut(d.text, " ")
		if s.text == "" {
			s.text = "{}"
		}
		if s.name == "" || !json.Valid([]byte(s.text)) {
			return s, fmt.Errorf("expected NAME and JSON arguments, got %q", d.text)
		}
	case "status":
		var code string
		code, s.text, _ = strings.Cut(d.text, " ")
		s.code, err = strconv.Atoi(code)
		if err == nil && (s.code < 100 || s.code > 599) {
			err = fmt.Errorf("%d is not an HTTP status", s.code)
		}
	case "close", "eof", "hang":
		if d.text != "" {
			return s, fmt.Errorf("takes nothing, got %q", d.text)
		}
	case "pause":
		s.pause, err = time.ParseDuration(d.text)
	case "done":
		if d.text == "" {
			return s, fmt.Errorf("expected a reason")
		}
	case "usage":
		if _, err = fmt.Sscanf(d.text, "%d %d", &s.in, &s.out); err != nil {
			err = fmt.Errorf("expected two numbers, got %q", d.text)
		}
	default:
		return s, fmt.Errorf("unknown directive")
	}
	return s, err
}

// withTag completes a model name as the server does.
func withTag(name string) string {
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		return name
	}
	return name + ":latest"
}
