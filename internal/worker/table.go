package worker

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"zcoder/internal/secret"
)

// Harness is one of the other agents' programs.
type Harness struct {
	Name  string // of the command and of the program
	Title string
	// EditMode is the worker's own name of the mode that Edit uses, and Edits what it
	// may do there, for people.
	EditMode, Edits string
	// Variants says that its models have variants.
	Variants bool

	keys          []string // variables with keys of its own provider
	byModel       bool     // its provider is the first part of the model's name
	quiet         []string // variables that keep it to its work
	consultEnv    []string
	args          func(Spec) []string
	stdin         bool // the prompt goes there; else it is the last argument
	decode        func(*reading, []byte)
	whole         bool // the output is one document
	loginCode     int  // exit status without a login; 0 is none
	stopsSilently bool // at a permission it ends with status 0 and no answer
}

// Names returns the names of all workers, in the order of lists.
func Names() []string {
	var names []string
	for _, h := range Table() {
		names = append(names, h.Name)
	}
	return names
}

// ByName returns a worker.
func ByName(name string) (Harness, bool) {
	table := Table()
	i := slices.IndexFunc(table, func(h Harness) bool { return h.Name == name })
	if i < 0 {
		return Harness{}, false
	}
	return table[i], true
}

// denyAll leaves opencode's reading tools: its plan agent runs commands unasked.
const denyAll = `OPENCODE_CONFIG_CONTENT={"permission":{"*":"deny","read":"allow","glob":"allow","grep":"allow","list":"allow"}}`

// Table returns the workers. The vectors are those that were measured: a consultation
// could not create a file, and no vector approves everything.
func Table() []Harness {
	return []Harness{
		{
			Name: "claude", Title: "Claude Code", EditMode: "acceptEdits", Edits: "edits files; commands that its settings do not allow are refused",
			keys:  []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"},
			quiet: []string{"DISABLE_AUTOUPDATER=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"},
			args:  claudeArgs, stdin: true, decode: decodeClaude,
		},
		{
			Name: "codex", Title: "Codex", EditMode: "workspace-write", Edits: "edits files and runs commands in its own sandbox, without network",
			keys: []string{"OPENAI_API_KEY", "CODEX_API_KEY"}, args: codexArgs, stdin: true, decode: decodeCodex,
		},
		{
			Name: "agy", Title: "Antigravity", EditMode: "accept-edits", Edits: "edits files in its own sandbox",
			keys: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, args: agyArgs, decode: decodeAgy, whole: true,
		},
		{
			Name: "opencode", Title: "OpenCode", EditMode: "build", Edits: "edits files and runs commands as its settings allow; it stops where it would ask", Variants: true,
			keys: []string{"OPENCODE_API_KEY"}, byModel: true, consultEnv: []string{denyAll}, args: opencodeArgs, stdin: true, decode: decodeOpencode, stopsSilently: true,
		},
		{
			Name: "pi", Title: "pi", EditMode: "read, edit, write", Edits: "edits files; it has no sandbox, so it gets no shell",
			byModel: true, quiet: []string{"PI_OFFLINE=1", "PI_TELEMETRY=0"}, args: piArgs, stdin: true, decode: decodePi,
		},
		{
			Name: "gemini", Title: "Gemini CLI", EditMode: "auto_edit", Edits: "edits files, without a shell",
			keys:  []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"},
			quiet: []string{"GEMINI_CLI_NO_RELAUNCH=true"}, args: geminiArgs, stdin: true, decode: decodeGemini, loginCode: 41,
		},
		{
			Name: "qwen", Title: "Qwen Code", EditMode: "auto-edit", Edits: "edits files, without a shell",
			keys: []string{"OPENAI_API_KEY", "DASHSCOPE_API_KEY", "QWEN_API_KEY"}, args: qwenArgs, stdin: true, decode: decodeClaude,
		},
	}
}

// with adds a flag with its value, unless the value is empty.
func with(argv []string, flag, value string) []string {
	if value == "" {
		return argv
	}
	return append(argv, flag, value)
}

func pick(m Mode, consult, edit string) string {
	if m == Edit {
		return edit
	}
	return consult
}

func claudeArgs(s Spec) []string {
	argv := []string{"-p", "--output-format", "stream-json", "--verbose", "--strict-mcp-config"}
	if s.Mode == Consult {
		argv = append(argv, "--tools", "Read,Grep,Glob")
	}
	return append(with(argv, "--model", s.Model), "--permission-mode", pick(s.Mode, "dontAsk", "acceptEdits"))
}

func codexArgs(s Spec) []string {
	argv := []string{"exec", "--json", "--skip-git-repo-check", "-s", pick(s.Mode, "read-only", "workspace-write"), "-C", s.Dir}
	if s.Mode == Consult {
		argv = append(argv, "--ephemeral")
	}
	return append(with(argv, "-m", s.Model), "-")
}

func agyArgs(s Spec) []string {
	argv := with([]string{"-p"}, "--model", s.Model)
	return append(argv, "--output-format", "json", "--mode", pick(s.Mode, "plan", "accept-edits"), "--sandbox", "--", s.Prompt)
}

func opencodeArgs(s Spec) []string {
	argv := []string{"run", "--format", "json", "--title", "zcoder", "--dir", s.Dir}
	if s.Mode == Edit {
		argv = append(argv, "--agent", "build")
	}
	return with(with(argv, "--model", s.Model), "--variant", s.Variant)
}

func piArgs(s Spec) []string {
	argv := []string{"--mode", "json", "-p"}
	if s.Mode == Consult {
		argv = append(argv, "--no-session")
	}
	return with(append(argv, "--tools", pick(s.Mode, "read,grep,find,ls", "read,edit,write")), "--model", s.Model)
}

func geminiArgs(s Spec) []string {
	return with([]string{"--skip-trust", "--approval-mode", pick(s.Mode, "plan", "auto_edit"), "-o", "stream-json"}, "-m", s.Model)
}

func qwenArgs(s Spec) []string {
	return with([]string{"--approval-mode", pick(s.Mode, "plan", "auto-edit"), "-o", "stream-json"}, "-m", s.Model)
}

// maxArgument is the longest argument that Linux passes on, in bytes.
const maxArgument = 131071

// Check reports why a prompt cannot be given to this worker.
func (h Harness) Check(prompt string) error {
	switch {
	case strings.IndexByte(prompt, 0) >= 0:
		return fmt.Errorf("ask %s: the request holds a NUL byte", h.Name)
	case !h.stdin && len(prompt) > maxArgument:
		return fmt.Errorf("ask %s: the request and its context have %d bytes, and it takes at most %d", h.Name, len(prompt), maxArgument)
	}
	return nil
}

// DepthVariable counts how many workers stand between a program and its user.
const DepthVariable = "ZCODER_WORKER_DEPTH"

// Environment is what a worker gets of env: neither our own settings and tokens nor
// keys of other providers, but those of its own. Values that mask recognises as
// secret go too. depth is the worker's own.
func (h Harness) Environment(env []string, mode Mode, model string, depth int, mask func(string) string) []string {
	own := slices.Clone(h.keys)
	if provider, _, ok := strings.Cut(model, "/"); ok && h.byModel {
		own = append(own, providerKeys(provider)...)
	}
	var kept []string
	for _, e := range secret.ScrubEnv(env) {
		if name, text, _ := strings.Cut(e, "="); !h.sets(name) && (mask == nil || mask(text) == text) {
			kept = append(kept, e)
		}
	}
	for _, e := range env {
		if name, _, _ := strings.Cut(e, "="); slices.Contains(own, name) {
			kept = slices.DeleteFunc(kept, func(k string) bool { return strings.HasPrefix(k, name+"=") })
			kept = append(kept, e)
		}
	}
	kept = append(kept, h.quiet...)
	if mode == Consult {
		kept = append(kept, h.consultEnv...)
	}
	return append(kept, fmt.Sprintf("%s=%d", DepthVariable, depth))
}

// sets reports whether the worker's own variables hold this one.
func (h Harness) sets(name string) bool {
	return slices.ContainsFunc(append(slices.Clone(h.quiet), h.consultEnv...), func(e string) bool { return strings.HasPrefix(e, name+"=") }) ||
		h.byModel && strings.HasPrefix(name, "OPENCODE_PERMISSION")
}

// providerKeys are the variables with the key of a provider, by the name that workers
// for many providers give it.
func providerKeys(provider string) []string {
	switch provider {
	case "google":
		return []string{"GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"}
	case "anthropic":
		return []string{"ANTHROPIC_API_KEY", "ANTHROPIC_OAUTH_TOKEN"}
	}
	return []string{strings.ToUpper(strings.ReplaceAll(provider, "-", "_")) + "_API_KEY"}
}

// Find looks a worker's program up in the directories of path, which are separated by
// colons. Relative ones do not count. A program inside one of the given directories,
// where a model can write, is refused. The error is for a person.
func (h Harness) Find(path string, executable func(string) bool, not ...string) (string, error) {
	refused := ""
	for dir := range strings.SplitSeq(path, ":") {
		if !filepath.IsAbs(dir) {
			continue
		}
		file := filepath.Join(dir, h.Name)
		if !executable(file) {
			continue
		}
		real, err := filepath.EvalSymlinks(file)
		if err == nil && !inside(real, not) && !inside(file, not) {
			return file, nil
		}
		refused = file
	}
	if refused != "" {
		return "", fmt.Errorf("%s lies in the workspace, where a model can change it", refused)
	}
	return "", fmt.Errorf("the program %q is not in PATH", h.Name)
}

func inside(file string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool {
		return file == dir || strings.HasPrefix(file, strings.TrimSuffix(dir, "/")+"/")
	})
}
