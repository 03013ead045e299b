package acp

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"zcoder/internal/event"
)

// kindOf is the protocol's word for what a call does.
func kindOf(c event.Call) sdk.ToolKind {
	switch c.Name {
	case "read_file", "read_file_range":
		return sdk.ToolKindRead
	case "list_files", "search":
		return sdk.ToolKindSearch
	case "write_file", "replace_text", "apply_patch":
		return sdk.ToolKindEdit
	case "run_command":
		return sdk.ToolKindExecute
	}
	switch c.Effect {
	case "exec":
		return sdk.ToolKindExecute
	case "network":
		return sdk.ToolKindFetch
	}
	return sdk.ToolKindOther
}

// locations are the places that the arguments of a call of ours name.
func locations(root string, c event.Call) []sdk.ToolCallLocation {
	switch kindOf(c) {
	case sdk.ToolKindRead, sdk.ToolKindSearch, sdk.ToolKindEdit:
	default:
		return nil
	}
	var args struct {
		Path string `json:"path"`
		Line int    `json:"start_line"`
	}
	if json.Unmarshal([]byte(c.Args), &args) != nil || args.Path == "" {
		return nil
	}
	place := sdk.ToolCallLocation{Path: absolute(root, args.Path)}
	if args.Line > 0 {
		place.Line = &args.Line
	}
	return []sdk.ToolCallLocation{place}
}

func absolute(root, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(root, path)
}

var hunkHead = regexp.MustCompile(`^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@`)

// diffContent turns a unified diff into the protocol's diffs, one for each hunk, and
// the places of the first hunk of each file. whole is false when the diff holds
// something else than hunks, as one that was cut does.
func diffContent(root, text string) (list []sdk.ToolCallContent, places []sdk.ToolCallLocation, whole bool) {
	r := diffReader{root: root, lines: strings.Split(strings.TrimSuffix(text, "\n"), "\n"), whole: true}
	if text == "" {
		return nil, nil, true
	}
	for len(r.lines) > 0 {
		r.step()
	}
	return r.list, r.places, r.whole
}

// diffReader reads a unified diff line by line.
type diffReader struct {
	root   string
	lines  []string
	old    string // the name of the file before; empty: there was none
	path   string // absolute
	fresh  bool   // the file has no place yet
	list   []sdk.ToolCallContent
	places []sdk.ToolCallLocation
	whole  bool
}

// step reads the two lines of names, a hunk, or a line that is neither.
func (r *diffReader) step() {
	line := r.lines[0]
	if len(r.lines) > 1 && strings.HasPrefix(line, "--- ") && strings.HasPrefix(r.lines[1], "+++ ") {
		r.old = diffName(line[4:], "a/")
		name := diffName(r.lines[1][4:], "b/")
		if name == "" {
			name = r.old
		}
		r.path, r.fresh, r.lines = absolute(r.root, name), true, r.lines[2:]
		return
	}
	if m := hunkHead.FindStringSubmatch(line); m != nil && r.path != "" {
		r.lines = r.lines[1:]
		r.hunk(count(m[2]), count(m[4]), atoi(m[3]))
		return
	}
	r.whole = r.whole && isDiffHead(line)
	r.lines = r.lines[1:]
}

// isDiffHead reports whether a line belongs to what stands before the names of a file.
func isDiffHead(line string) bool {
	for _, head := range []string{"diff ", "index ", "new file", "deleted file", "old mode", "new mode", "rename ", "similarity "} {
		if strings.HasPrefix(line, head) {
			return true
		}
	}
	return false
}

// hunk reads as many lines as its head counts.
func (r *diffReader) hunk(before, after, start int) {
	var old, fresh strings.Builder
	for before > 0 || after > 0 {
		if len(r.lines) == 0 {
			r.whole = false
			break
		}
		line := r.lines[0]
		if line == "" {
			line = " "
		}
		switch line[0] {
		case ' ':
			before, after = before-1, after-1
		case '-':
			before--
		case '+':
			after--
		case '\\':
		default:
			r.whole = false
			before, after = 0, 0
			continue
		}
		r.lines = r.lines[1:]
		if line[0] == ' ' || line[0] == '-' {
			old.WriteString(line[1:] + "\n")
		}
		if line[0] == ' ' || line[0] == '+' {
			fresh.WriteString(line[1:] + "\n")
		}
	}
	for len(r.lines) > 0 && strings.HasPrefix(r.lines[0], `\`) {
		r.lines = r.lines[1:] // that the file has no line end at its end
	}
	if r.old == "" {
		r.list = append(r.list, sdk.ToolDiffContent(r.path, fresh.String()))
	} else {
		r.list = append(r.list, sdk.ToolDiffContent(r.path, fresh.String(), old.String()))
	}
	if r.fresh {
		place := sdk.ToolCallLocation{Path: r.path}
		if start > 0 {
			place.Line = &start
		}
		r.places, r.fresh = append(r.places, place), false
	}
}

// diffName is a file's name in a diff, or "" for none.
func diffName(text, prefix string) string {
	if text == "/dev/null" {
		return ""
	}
	if strings.HasPrefix(text, `"`) {
		if plain, err := strconv.Unquote(text); err == nil {
			text = plain
		}
	}
	return strings.TrimPrefix(text, prefix)
}

func count(text string) int {
	if text == "" {
		return 1
	}
	return atoi(text)
}

func atoi(text string) int {
	n, _ := strconv.Atoi(text) // digits; what does not fit is 0
	return n
}
