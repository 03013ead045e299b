package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The sections of the table, in the order of help.
const (
	sectionInput    = "What to do"
	sectionPlace    = "Where"
	sectionModel    = "Model and server"
	sectionCommands = "Commands and tools"
	sectionContext  = "Context"
	sectionLoop     = "Limits of a turn"
	sectionGuidance = "Guidance"
	sectionWorkers  = "Workers: other agents' programs"
	sectionRelay    = "Messages between instances"
	sectionRemote   = "Work on another machine"
	sectionOutput   = "Terminal and diagnosis"
)

// Table returns every setting in the order of help. A new setting is one row.
func Table() []Setting {
	var table []Setting
	for _, part := range []struct {
		section string
		rows    []Setting
	}{
		{sectionInput, inputRows()},
		{sectionPlace, placeRows()},
		{sectionModel, modelRows()},
		{sectionCommands, commandRows()},
		{sectionContext, contextRows()},
		{sectionLoop, loopRows()},
		{sectionGuidance, guidanceRows()},
		{sectionWorkers, workerRows()},
		{sectionRelay, relayRows()},
		{sectionRemote, remoteRows()},
		{sectionOutput, outputRows()},
	} {
		for _, s := range part.rows {
			table = append(table, s.named(part.section))
		}
	}
	return table
}

// Names returns the names of all settings that are more than a request for one run.
func Names() []string {
	var names []string
	for _, s := range Table() {
		if !s.FlagOnly {
			names = append(names, s.Name)
		}
	}
	return names
}

const (
	maxTokens  = 16_777_216 // above the window of every known model
	maxBytes   = 16_777_216
	maxSeconds = 604_800 // a week
)

func inputRows() []Setting {
	return []Setting{
		{Name: "prompt", Flag: "prompt", Short: "p", FlagOnly: true, Meaning: "do this one request, print the answer and end; - reads it from stdin"},
		{Name: "resume", Flag: "resume", Arg: "ID", FlagOnly: true, Meaning: "go on with this session; without a known id, list them"},
		{Name: "continue", Flag: "continue", Kind: Bool, Default: "false", FlagOnly: true, Meaning: "go on with the newest session of this workspace and profile"},
		{Name: "demo", Flag: "demo", Kind: Bool, Default: "false", FlagOnly: true, Meaning: "show a scripted session on a sample project, without Ollama"},
		{Name: "json", Flag: "json", Kind: Bool, Default: "false", FlagOnly: true, Meaning: "with --prompt: print the events as JSON lines"},
		{Name: "print-instructions", Flag: "print-instructions", Kind: Bool, Default: "false", FlagOnly: true, Meaning: "print the AGENTS.md texts that the model gets, each under its path, and end"},
		{Name: "print-skills", Flag: "print-skills", Kind: Bool, Default: "false", FlagOnly: true, Meaning: "print the list of skills that the model gets and end"},
		{Name: "help", Flag: "help", Short: "h", Kind: Bool, Default: "false", FlagOnly: true, Meaning: "print this help and end"},
		{Name: "version", Flag: "version", Short: "V", Kind: Bool, Default: "false", FlagOnly: true, Meaning: "print the version and end"},
	}
}

func placeRows() []Setting {
	return []Setting{
		{Name: "workspace", Flag: "workspace", Short: "w", Kind: Path, Shown: "the current directory", Meaning: "the directory tree that the file tools may touch"},
		{Name: "profile", Flag: "profile", Kind: Enum, Enum: []string{"coding", "sysadmin"}, Default: "coding", Meaning: "prompt and rules: coding, or sysadmin, where each command asks"},
		{Name: "home", Key: "-", Kind: Path, Shown: "${XDG_CONFIG_HOME:-~/.config}/zcoder", Meaning: "directory of settings, sessions and records"},
		{Name: "sessions-dir", Kind: Path, Shown: "$ZCODER_HOME/sessions", Meaning: "directory of the stored sessions"},
	}
}

func modelRows() []Setting {
	return []Setting{
		{Name: "model", Flag: "model", Short: "m", Arg: "NAME", Default: "qwen3-coder:latest", Meaning: "model that answers"},
		{Name: "provider", Flag: "provider", Kind: Enum, Enum: []string{"ollama", "openai"}, Default: "ollama", Meaning: "what the server speaks: Ollama's API, or chat completions as llama.cpp, vLLM and others do"},
		{Name: "host", Flag: "host", Arg: "URL", Env: "OLLAMA_HOST", Default: "localhost:11434", Meaning: "model server, in every form that Ollama takes"},
		{Name: "api-key", Secret: true, Meaning: "key for the server; goes out over https, or to this machine"},
		{Name: "ollama-api-key", Env: "OLLAMA_API_KEY", Key: "-", Secret: true, Meaning: "the same for the provider ollama, unless api-key is set"},
		{Name: "openai-api-key", Env: "OPENAI_API_KEY", Key: "-", Secret: true, Meaning: "the same for the provider openai, unless api-key is set"},
		{Name: "think", Flag: "think", Arg: "LEVEL", Kind: Enum, Enum: []string{"true", "false", "low", "medium", "high"}, Default: "true", Meaning: "thinking: on, off, or a level for models that have levels",
			Switches: []Switch{{"no-think", "false", "do not let the model think"}}},
		{Name: "warmup", Kind: Bool, Default: "true", Meaning: "load the model while the first prompt is typed",
			Switches: []Switch{{"no-warmup", "false", "do not load the model before the first prompt"}}},
		{Name: "keep-alive", Flag: "keep-alive", Arg: "TIME", Check: checkKeepAlive, Shown: "as the server is set", Meaning: "how long the server keeps the model loaded: seconds, a time such as 10m, or -1 for always"},
		{Name: "unload-at-exit", Kind: Bool, Default: "false", Meaning: "unload the model when the program ends"},
		{Name: "max-output-tokens", Kind: Int, Min: 256, Max: maxTokens, Default: "8192", Unit: "tokens", Meaning: "longest reply of the model, thinking and tool calls included"},
		{Name: "first-byte-timeout", Kind: Duration, Max: maxSeconds, Default: "0", Meaning: "how long a reply may take to begin; 0 waits as long as it takes"},
		{Name: "http-read-timeout", Kind: Duration, Max: maxSeconds, Default: "900", Meaning: "how long a reply that began may be silent; 0 means no limit"},
		{Name: "transport-retry-limit", Kind: Int, Max: 10, Default: "1", Unit: "retries", Meaning: "replays of a request whose connection failed before any answer"},
	}
}

func commandRows() []Setting {
	return []Setting{
		{Name: "command-policy", Kind: Enum, Enum: []string{"ask", "allow", "deny"}, Default: "ask", Meaning: "shell commands of the model: ask each time, allow or deny; the guard stays in every case",
			Switches: []Switch{{"yes", "allow", "run shell commands without asking (coding profile)"}, {"deny-commands", "deny", "refuse every shell command without asking"}}},
		{Name: "read-only", Flag: "read-only", Kind: Bool, Default: "false", Meaning: "refuse everything but reading"},
		{Name: "tool-exposure", Flag: "tool-exposure", Kind: Enum, Enum: []string{"full", "staged"}, Default: "full", Meaning: "full: every turn has all tools; staged: the model first says whether a turn answers, works in the workspace or changes something outside"},
		{Name: "mcp-startup-timeout", Kind: Duration, Min: 1, Max: 3600, Default: "20", Meaning: "how long an MCP server may take to start"},
		{Name: "mcp-request-timeout", Kind: Duration, Min: 1, Max: 3600, Default: "120", Meaning: "how long an MCP server may be silent in a call"},
		{Name: "mcp-prompt-max-bytes", Kind: Int, Min: 256, Max: maxBytes, Default: "8192", Unit: "bytes", Meaning: "longest prompt that is taken from an MCP server (/SERVER:PROMPT)"},
		{Name: "checkpoints", Kind: Bool, Default: "true", Meaning: "keep what the workspace was before each turn, for /undo"},
		{Name: "checkpoints-max-mb", Kind: Int, Min: 16, Max: 1_000_000, Default: "2048", Unit: "MB", Meaning: "size of all that is kept for /undo; the oldest goes first"},
		{Name: "max-tool-output", Kind: Int, Min: 1024, Max: maxBytes, Default: "32768", Unit: "characters", Meaning: "longest tool result for the model; head and tail of a longer one are kept"},
	}
}

func contextRows() []Setting {
	return []Setting{
		{Name: "context-window", Flag: "context-window", Kind: AutoInt, Min: 1024, Max: maxTokens, Default: "auto", Unit: "tokens", Arg: "auto|N", Meaning: "context window to ask the server for"},
		{Name: "context-fallback", Kind: Int, Min: 1024, Max: maxTokens, Default: "16384", Unit: "tokens", Meaning: "window for a model that is not loaded and not known yet, bounded by the model's own limit"},
		{Name: "compact-percent", Flag: "compact-at", Kind: Int, Min: 25, Max: 90, Default: "85", Unit: "percent", Arg: "PCT", Meaning: "share of the window at which the conversation is compacted"},
		{Name: "compact-max-tokens", Kind: Int, Min: 256, Max: maxTokens, Default: "2048", Unit: "tokens", Meaning: "longest summary that takes the place of older messages"},
		{Name: "compact-keep-user-tokens", Kind: Int, Max: maxTokens, Default: "4096", Unit: "tokens", Meaning: "exact user requests kept by a compaction"},
		{Name: "compact-keep-recent-tokens", Kind: Int, Max: maxTokens, Default: "16384", Unit: "tokens", Meaning: "newest messages kept as they are by a compaction"},
		{Name: "compact-min-yield-tokens", Kind: Int, Max: maxTokens, Default: "2048", Unit: "tokens", Meaning: "what a compaction must save to be used"},
		{Name: "compact-retry-limit", Kind: Int, Max: 10, Default: "2", Unit: "retries", Meaning: "corrections of a summary that is not valid"},
	}
}

func loopRows() []Setting {
	return []Setting{
		{Name: "max-rounds", Flag: "max-rounds", Kind: Int, Max: 1_000_000, Default: "0", Unit: "rounds", Meaning: "model replies in one turn; 0 means no limit"},
		{Name: "max-time", Flag: "max-time", Kind: Duration, Max: maxSeconds, Default: "0", Meaning: "length of one turn; 0 means no limit"},
		{Name: "loop-repeat-limit", Kind: Int, Min: 2, Max: 100, Default: "3", Unit: "rounds", Meaning: "rounds with the same calls and results before a warning"},
		{Name: "loop-max-cycle", Kind: Int, Min: 1, Max: 16, Default: "4", Unit: "rounds", Meaning: "longest cycle of rounds that counts as a repetition"},
		{Name: "incomplete-retry-limit", Kind: Int, Max: 20, Default: "3", Unit: "retries", Meaning: "corrections of an empty or broken reply"},
		{Name: "goal-max-rejections", Kind: Int, Min: 1, Max: 100, Default: "3", Unit: "rejections", Meaning: "verdicts against a goal after which it is blocked"},
		{Name: "require-finish-tool", Kind: Bool, Default: "false", Meaning: "end a turn only by the finish tool, never by a plain reply"},
	}
}

func guidanceRows() []Setting {
	return []Setting{
		{Name: "project-doc-max-bytes", Kind: Int, Max: maxBytes, Default: "32768", Unit: "bytes", Meaning: "AGENTS.md files together; 0 reads none"},
		{Name: "project-doc-fallbacks", Kind: List, Meaning: "file names that are read where no AGENTS.md stands"},
		{Name: "max-skills", Kind: Int, Max: 10_000, Default: "128", Unit: "skills", Meaning: "skills that count; 0 switches them off"},
		{Name: "max-active-skills", Kind: Int, Max: 1000, Default: "8", Unit: "skills", Meaning: "skills active in one conversation"},
		{Name: "skill-max-bytes", Kind: Int, Max: maxBytes, Default: "32768", Unit: "bytes", Meaning: "largest SKILL.md that is read"},
		{Name: "active-skills-max-bytes", Kind: Int, Max: maxBytes, Default: "65536", Unit: "bytes", Meaning: "texts of the active skills together"},
		{Name: "skill-catalog-max-bytes", Kind: Int, Min: 256, Max: maxBytes, Default: "32768", Unit: "bytes", Meaning: "list of skills in the prompt; what has no room is found with discover_skills"},
	}
}

// relayRows are lenient: what is not allowed switches the relay off and nothing else.
func relayRows() []Setting {
	return []Setting{
		{Name: "relay", Kind: Enum, Enum: []string{"true", "false", "paused"}, Default: "true", Lenient: true, Meaning: "messages between the instances of one user: true or on, false or off, or paused, which refuses new ones; only in the terminal"},
		{Name: "relay-dir", Kind: Path, Lenient: true, Shown: "$XDG_RUNTIME_DIR/zcoder-agents", Meaning: "directory in which the instances find each other; private, real, and with a short path"},
		{Name: "relay-max-bytes", Kind: Int, Min: 1024, Max: 1 << 20, Default: "65536", Unit: "bytes", Lenient: true, Meaning: "largest request between instances"},
		{Name: "relay-max-message-chars", Kind: Int, Min: 1, Max: 100_000, Default: "16000", Unit: "characters", Lenient: true, Meaning: "longest message between instances"},
		{Name: "relay-max-queue", Kind: Int, Min: 1, Max: 1000, Default: "16", Unit: "messages", Lenient: true, Meaning: "accepted messages that are not finished"},
		{Name: "relay-io-timeout", Kind: Duration, Min: 1, Max: 60, Default: "2", Lenient: true, Meaning: "how long an exchange between instances may take"},
	}
}

// workerNames are the programs of other agents.
func workerNames() []string {
	return []string{"claude", "codex", "agy", "opencode", "pi", "gemini", "qwen"}
}

func workerRows() []Setting {
	rows := []Setting{
		{Name: "delegate", Kind: Bool, Default: "false", Meaning: "let the model ask for another agent; each call needs approval"},
		{Name: "delegate-timeout-seconds", Kind: Duration, Min: 1, Max: maxSeconds, Default: "1800", Meaning: "how long one run of a worker may take"},
		{Name: "delegate-idle-seconds", Kind: Duration, Max: maxSeconds, Default: "600", Meaning: "how long a worker may print nothing; 0 means no limit"},
		{Name: "delegate-max-output", Kind: Int, Min: 1024, Max: maxBytes, Default: "32768", Unit: "characters", Meaning: "longest report of a worker that the model gets; head and tail of a longer one are kept"},
		{Name: "delegate-history-chars", Kind: Int, Max: maxBytes, Default: "12000", Unit: "characters", Meaning: "end of the conversation that a worker gets with a typed request; 0 gives none"},
		{Name: "delegate-request-chars", Kind: Int, Min: 100, Max: maxBytes, Default: "2000", Unit: "characters", Meaning: "longest single message in it"},
		{Name: "opencode-variant", Check: checkModelName, Meaning: "variant of the model that opencode uses"},
	}
	for _, name := range workerNames() {
		rows = append(rows,
			Setting{Name: name + "-model", Shown: "its own choice", Meaning: "model that " + name + " uses as a worker", Check: checkModelName},
			Setting{Name: name + "-timeout", Kind: Duration, Max: maxSeconds, Default: "0", Meaning: "how long a run of " + name + " may take; 0 means delegate-timeout-seconds"})
	}
	return rows
}

// checkModelName refuses what another program would take for an option.
func checkModelName(text string) error {
	if strings.HasPrefix(text, "-") || strings.ContainsAny(text, " \t\n") {
		return fmt.Errorf("%q is not allowed: give the name of a model", text)
	}
	return nil
}

func remoteRows() []Setting {
	return []Setting{
		{Name: "server", Flag: "server", Arg: "NAME", FlagOnly: true, Meaning: "serve this workspace to clients under a name, until it is ended; needs --token-file, or --stdio"},
		{Name: "connect", Flag: "connect", Arg: "HOST", FlagOnly: true, Meaning: "work in the workspace of a server: HOST[:PORT], unix:PATH, or ssh://[USER@]HOST[:PORT]/WORKSPACE, which starts one there"},
		{Name: "acp", Flag: "acp", Kind: Bool, Default: "false", FlagOnly: true, Meaning: "speak the Agent Client Protocol over stdin and stdout with the editor that started it"},
		{Name: "token-file", Flag: "token-file", Kind: Path, Meaning: "file with the token that server and client share; zcoder server token FILE makes one"},
		{Name: "listen", Flag: "listen", Arg: "ADDR", Default: "127.0.0.1", Meaning: "with --server: where to listen, as HOST, HOST:PORT or unix:PATH; only this machine unless another address is named"},
		{Name: "port", Flag: "port", Kind: Int, Max: 65535, Default: "7337", Meaning: "with --server: the port, unless --listen names one; 0 takes a free one"},
		{Name: "allow-host", Flag: "allow-host", Kind: List, Meaning: "with --server: more names by which clients may call it"},
		{Name: "stdio", Flag: "stdio", Kind: Bool, Default: "false", FlagOnly: true, Meaning: "with --server: speak over stdin and stdout, as ssh starts it"},
		{Name: "web", Flag: "web", Kind: Bool, Default: "false", FlagOnly: true, Meaning: "with --server: also offer a page for browsers there; log in with the token"},
		{Name: "keep", Flag: "keep", Kind: Bool, Default: "false", FlagOnly: true, Meaning: "with --connect ssh://…: a turn goes on to its end there when the connection breaks"},
		{Name: "remote-program", Default: "zcoder", Check: checkProgram, Meaning: "name or path of zcoder on the other machine, for ssh://"},
		{Name: "remote-approval-timeout", Kind: Duration, Min: 1, Max: 86_400, Default: "300", Meaning: "how long an approval waits for a client before it is denied"},
		{Name: "remote-max-request-bytes", Kind: Int, Min: 1024, Max: maxBytes, Default: "1048576", Unit: "bytes", Meaning: "largest request that a server takes"},
		{Name: "remote-request-timeout", Kind: Duration, Min: 1, Max: 3600, Default: "30", Meaning: "how long a client waits for a reply"},
	}
}

// checkProgram accepts what a shell on the other machine cannot take for more than a
// word: ssh hands it a text, not a list.
func checkProgram(text string) error {
	if programName.MatchString(text) {
		return nil
	}
	return fmt.Errorf("%q is not allowed: give a name or path of letters, digits and . _ / ~ -, not beginning with -", text)
}

var programName = regexp.MustCompile(`^[A-Za-z0-9_./~][A-Za-z0-9_./~-]*$`)

func outputRows() []Setting {
	return []Setting{
		{Name: "bell", Kind: Bool, Default: "true", Meaning: "ring the terminal bell when an answer or an approval waits"},
		{Name: "debug", Flag: "debug", Kind: Bool, Default: "false", Meaning: "print what is sent and received on stderr"},
		{Name: "debug-log", Flag: "debug-log", Kind: Path, Meaning: "write it to this file instead; private, never through a link"},
		{Name: "debug-max-chars", Kind: Int, Min: 256, Max: maxBytes, Default: "16000", Unit: "characters", Meaning: "longest text in one debug record"},
	}
}

// checkKeepAlive accepts what Ollama does: seconds, a time, or a negative number.
func checkKeepAlive(text string) error {
	if _, err := strconv.Atoi(text); err == nil {
		return nil
	}
	if _, err := time.ParseDuration(text); err == nil {
		return nil
	}
	return fmt.Errorf("%q is not allowed: give seconds, a time such as 10m, 0 or -1", text)
}
