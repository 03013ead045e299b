package perf

// The quantities that the Go benchmarks report, by table.
var (
	sessions = []source{
		{what: "a round in turns of ten, after a history of so many events, no model, no sync", pkg: "internal/session", name: `Round/(\w+)`, metric: "ms/round", unit: "ms", goal: atMost(2), grows: linear, why: "each turn copies its history once"},
		{what: "encoding the request of 1.2 MB that a long history makes", pkg: "internal/ollama", name: "Encode", metric: "ns/op", unit: "ms", scale: 1e-6},
		{what: "append an event to a log of so many, without sync", pkg: "internal/store", name: `Append/(\w+)`, metric: "ns/op", unit: "µs", scale: 1e-3, goal: atMost(100), grows: flat},
		{what: "load a log of so many events", pkg: "internal/store", name: `Load/(\w+)`, metric: "ns/op", unit: "ms", scale: 1e-6, grows: linear},
		{what: "open and resume 10 000 events", pkg: "internal/session", name: `Resume/10k`, metric: "ns/op", unit: "ms", scale: 1e-6, goal: atMost(80)},
		{what: "open and resume, by events", pkg: "internal/session", name: `Resume/(\w+)`, metric: "ns/op", unit: "ms", scale: 1e-6, grows: linear},
		{what: "memory that a resumed session holds, by events", pkg: "internal/session", name: `Resume/(\w+)`, metric: "held-MB", unit: "MB", grows: linear},
		{what: "list so many sessions", pkg: "internal/store", name: `ListSessions/(\w+)`, metric: "ns/op", unit: "ms", scale: 1e-6, goal: atMost(30), grows: linear},
		{what: "compaction of a history of so many rounds, no model", pkg: "internal/agent", name: `Compact/(\w+)`, metric: "ns/op", unit: "ms", scale: 1e-6, grows: linear},
	}
	screens = []source{
		{what: "sanitiser, plain text", pkg: "internal/termtext", name: "Safe/ascii", metric: "MB/s", unit: "MB/s", goal: atLeast(20)},
		{what: "sanitiser, German text", pkg: "internal/termtext", name: "Safe/german", metric: "MB/s", unit: "MB/s", goal: atLeast(20)},
		{what: "sanitiser, Chinese text", pkg: "internal/termtext", name: "Safe/chinese", metric: "MB/s", unit: "MB/s", goal: atLeast(20)},
		{what: "sanitiser, nothing but escape sequences", pkg: "internal/termtext", name: "Safe/escapes", metric: "MB/s", unit: "MB/s", goal: atLeast(20)},
		{what: "sanitiser, a stream in pieces of 5 bytes", pkg: "internal/termtext", name: "Stream", metric: "MB/s", unit: "MB/s", goal: atLeast(20)},
		{what: "reply text through sanitiser, renderer and screen, pieces of 64 bytes", pkg: "repl", name: "Transcript/draft=false/piece=64", metric: "MB/s", unit: "MB/s", goal: atLeast(20)},
		{what: "the same with a draft on the prompt line", pkg: "repl", name: "Transcript/draft=true/piece=64", metric: "MB/s", unit: "MB/s", goal: atLeast(20)},
		{what: "parsing the stream, text of records of 4 bytes", pkg: "internal/ollama", name: "Stream/4_bytes_a_record", metric: "textMB/s", unit: "MB/s", why: "313 MB/s of JSON on the build machine: the records are 98 % frame"},
		{what: "parsing the stream, text of records of 32 bytes", pkg: "internal/ollama", name: "Stream/32_bytes_a_record", metric: "textMB/s", unit: "MB/s", goal: atLeast(20)},
	}
	files = []source{
		search("a literal", "literal", 1.5),
		search("a literal that is common", "literal_common", 1.5),
		search("a pattern with a literal in it", "regex", 1.5),
		search("a pattern without one", "regex_without_literal", 1.5),
		search("a whole word", "word", 1.5),
		search("three literals at once", "alternatives", 1.5),
		search("letters of either case", "fold", 3),
		search("common letters of either case", "fold_common", 3),
		{what: "search for a literal, by files", pkg: "tools/search", name: `Search/(\w+)/literal`, metric: "ms", unit: "ms", grows: linear},
		{what: "list the first 100 entries, by files", pkg: "tools/search", name: `Search/(\w+)/list`, metric: "ms", unit: "ms", grows: flat},
		{what: "read_file of 30 KB", pkg: "tools/file", name: "ReadFile", metric: "ns/op", unit: "µs", scale: 1e-3},
		{what: "read_file_range at the end of a file", pkg: "tools/file", name: `ReadFileRange/(\w+)`, metric: "ns/op", unit: "ms", scale: 1e-6, grows: linear},
		{what: "replace_text in a file in memory", pkg: "tools/file", name: `ReplaceText/(\w+)`, metric: "MB/s", unit: "MB/s", goal: atLeast(200), grows: flat},
		{what: "allocated for it", pkg: "tools/file", name: `ReplaceText/(\w+)`, metric: "B/op", unit: "MB", scale: 1e-6, grows: linear},
		{what: "apply_patch with three hunks, file in memory", pkg: "tools/patch", name: `LargeFile/(\w+)`, metric: "MB/s", unit: "MB/s", goal: atLeast(200), grows: flat, why: "a file of more than 64 MB is refused"},
		{what: "allocated for it", pkg: "tools/patch", name: `LargeFile/(\w+)`, metric: "B/op", unit: "MB", scale: 1e-6, grows: linear},
	}
	commands = []source{
		{what: "a command that writes 300 MB of zeros, beside `cmd \\| cat >/dev/null`", pkg: "internal/proc", name: "Flood/zero", metric: "wall-ratio", unit: "×", goal: atMost(1.2)},
		{what: "a command that writes 300 MB of lines, beside `cmd \\| cat >/dev/null`", pkg: "internal/proc", name: "Flood/lines", metric: "wall-ratio", unit: "×", goal: atMost(1.2)},
		{what: "a command that does nothing", pkg: "internal/proc", name: "Short", metric: "ours-ms", unit: "ms"},
	}
	undo = []source{
		{what: "first checkpoint, beside reading the tree and writing one pack, by files", pkg: "internal/checkpoint", name: `First/(\w+)`, metric: "wall-ratio", unit: "×", goal: atMost(1.3)},
		{what: "its time", pkg: "internal/checkpoint", name: `First/(\w+)`, metric: "ms", unit: "ms", grows: linear},
		{what: "next checkpoint, beside a bare walk with lstat, by files", pkg: "internal/checkpoint", name: `Next/(\w+)`, metric: "wall-ratio", unit: "×", goal: atMost(1.5)},
		{what: "its time", pkg: "internal/checkpoint", name: `Next/(\w+)`, metric: "ms", unit: "ms", why: "the bare walk's grows alike, since a large tree fills the caches"},
	}
	records = []source{
		{what: "audit: append and sync, beside a bare write and fsync, by records", pkg: "internal/audit", name: `Append/(\w+)`, metric: "ratio", unit: "×", goal: atMost(1.5), grows: flat},
		{what: "audit: append and sync", pkg: "internal/audit", name: `Append/(\w+)`, metric: "ours-µs", unit: "µs", grows: flat},
		{what: "audit: append without sync", pkg: "internal/audit", name: `AppendUnsynced/(\w+)`, metric: "ns/op", unit: "µs", scale: 1e-3, grows: flat},
		{what: "audit: open", pkg: "internal/audit", name: `Open/(\w+)`, metric: "ns/op", unit: "ms", scale: 1e-6, grows: flat},
		{what: "audit: verify", pkg: "internal/audit", name: `Verify/(\w+)`, metric: "records/s", unit: "records/s", goal: atLeast(300_000), grows: flat},
	}
	relayed = []source{
		{what: "messages accepted, four senders, spool in memory", pkg: "relay", name: "Accept/memory/4", metric: "messages/s", unit: "1/s", goal: atLeast(3000)},
		{what: "connect to acknowledgement, 99 of 100", pkg: "relay", name: "Accept/memory/4", metric: "p99-ms", unit: "ms", goal: atMost(5)},
		{what: "messages accepted by senders", pkg: "relay", name: `Accept/memory/(\d+)`, metric: "messages/s", unit: "1/s", goal: atLeast(3000), grows: flat},
		{what: "messages accepted, four senders, spool on the disk", pkg: "relay", name: "Accept/disk/4", metric: "messages/s", unit: "1/s"},
		{what: "find the other instances, by their number", pkg: "relay", name: `Peers/(\w+)`, metric: "ns/op", unit: "ms", scale: 1e-6, grows: linear},
	}
	remoted = []source{
		{what: "event to a client over loopback, by clients that follow", pkg: "remote", name: `Event/(\w+)`, metric: "median-ms", unit: "ms", goal: atMost(5), grows: linear},
		{what: "the same, 99 of 100", pkg: "remote", name: `Event/(\w+)`, metric: "p99-ms", unit: "ms"},
		{what: "event to a healthy client beside so many that do not read", pkg: "remote", name: `Slow/(\w+)`, metric: "median-ms", unit: "ms", goal: atMost(5), grows: flat},
		{what: "events through one stream", pkg: "remote", name: "Stream/bursts", metric: "events/s", unit: "1/s"},
		{what: "one poll of an earlier client", pkg: "remote", name: "Poll", metric: "ns/op", unit: "ms", scale: 1e-6},
	}
)

// search is a row beside ripgrep.
func search(what, query string, limit float64) source {
	return source{what: "search for " + what + ", beside ripgrep, by files", pkg: "tools/search", name: `Search/(\w+)/` + query, metric: "×rg-wall", unit: "×", goal: atMost(limit)}
}

// efforts are for packages whose benchmarks take medians themselves, or long.
var efforts = map[string]effort{
	"tools/search":        {"9x", 1},
	"internal/checkpoint": {"1x", 1},
	"internal/audit":      {"500ms", 1},
	"internal/proc":       {"7x", 1},
	"tools/file":          {"5x", 3},
	"tools/patch":         {"4x", 3},
	"relay":               {"2000x", 3},
	"remote":              {"1000x", 3},
}
