package skills

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxFront bounds the frontmatter, in bytes.
const maxFront = 16 << 10

// front is what the head of a SKILL.md says.
type front struct {
	name, description         string
	nameLine, descriptionLine int // 1 when there is none
	body                      string
	bodyLine                  int // number of the body's first line
	notes                     []note
}

// note is a remark on a line.
type note struct {
	line int
	text string
}

// knownKeys are the keys that the format defines. Those with a text have no effect
// here, and it says why.
var knownKeys = map[string]string{
	"name": "", "description": "", "license": "", "compatibility": "", "metadata": "", "version": "",
	"allowed-tools": "allowed-tools is ignored: a skill grants no permission",
	"hooks":         "hooks is ignored: a skill starts nothing",
}

// readFront divides a SKILL.md and reads its frontmatter. YAML that is nearly right
// is read line by line, and noted.
func readFront(text string) (front, error) {
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\uFEFF"), "\r\n", "\n")
	lines := strings.SplitAfter(text, "\n")
	start := 0
	for start < len(lines) && strings.TrimSpace(lines[start]) == "" {
		start++
	}
	if start == len(lines) || strings.TrimRight(lines[start], " \t\n") != "---" {
		return front{}, errors.New("its " + skillFile + " has no frontmatter: it must begin with a line ---")
	}
	end := start + 1
	for end < len(lines) && !isFrontEnd(lines[end]) {
		end++
	}
	if end == len(lines) {
		return front{}, errors.New("the frontmatter of its " + skillFile + " has no end: a line --- is missing")
	}
	head := strings.Join(lines[start+1:end], "")
	if len(head) > maxFront {
		return front{}, fmt.Errorf("the frontmatter of its %s has %d bytes, at most %d are read", skillFile, len(head), maxFront)
	}
	f := front{nameLine: 1, descriptionLine: 1, body: strings.Join(lines[end+1:], ""), bodyLine: end + 2}
	f.read(head, start+1)
	return f, nil
}

func isFrontEnd(line string) bool {
	line = strings.TrimRight(line, " \t\n")
	return line == "---" || line == "..."
}

// read takes the values of the frontmatter, which begins behind line number before.
func (f *front) read(head string, before int) {
	var doc yaml.Node
	err := yaml.Unmarshal([]byte(head), &doc)
	switch {
	case err != nil:
		f.notes = append(f.notes, note{before + yamlLine(err), "the frontmatter is not valid YAML and was read line by line: " + strings.TrimPrefix(err.Error(), "yaml: ")})
		f.readLines(head, before)
	case len(doc.Content) == 0 || doc.Content[0].Kind != yaml.MappingNode:
		f.notes = append(f.notes, note{before + 1, "the frontmatter holds no keys"})
	default:
		f.readNodes(doc.Content[0].Content, before)
	}
}

var lineInError = regexp.MustCompile(`line (\d+)`)

func yamlLine(err error) int {
	if m := lineInError.FindStringSubmatch(err.Error()); m != nil {
		n, _ := strconv.Atoi(m[1]) // the pattern holds digits
		return n
	}
	return 1
}

func (f *front) readNodes(pairs []*yaml.Node, before int) {
	seen := map[string]bool{}
	for i := 0; i+1 < len(pairs); i += 2 {
		key, value := pairs[i], pairs[i+1]
		if value.Kind == yaml.AliasNode {
			value = value.Alias
		}
		switch {
		case seen[key.Value]:
			f.notes = append(f.notes, note{before + key.Line, fmt.Sprintf("the key %q stands twice; the first one counts", key.Value)})
		case (key.Value == "name" || key.Value == "description") && value.Kind != yaml.ScalarNode:
			f.notes = append(f.notes, note{before + key.Line, fmt.Sprintf("the value of %q is not a text", key.Value)})
		case value.Kind == yaml.ScalarNode && value.Tag == "!!null":
			f.set(key.Value, "", before+key.Line)
		default:
			f.set(key.Value, value.Value, before+key.Line)
		}
		seen[key.Value] = true
	}
}

// set keeps a value that means something and notes keys that do not.
func (f *front) set(key, value string, line int) {
	why, known := knownKeys[key]
	switch {
	case key == "name":
		f.name, f.nameLine = strings.TrimSpace(value), line
	case key == "description":
		f.description, f.descriptionLine = strings.TrimSpace(value), line
	case !known:
		f.notes = append(f.notes, note{line, fmt.Sprintf("the key %q has no effect", key)})
	case why != "":
		f.notes = append(f.notes, note{line, why})
	}
}

var keyLine = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9_-]*):(?:[ \t]+(.*))?$`)

// readLines reads "key: rest of the line", with indented lines that go on, as people
// write who do not quote a colon.
func (f *front) readLines(head string, before int) {
	key, value, at := "", "", 0
	seen := map[string]bool{}
	flush := func() {
		if key != "" && !seen[key] {
			f.set(key, unquote(value), at)
		}
		seen[key] = true
	}
	for i, line := range strings.Split(head, "\n") {
		if m := keyLine.FindStringSubmatch(strings.TrimRight(line, " \t")); m != nil {
			flush()
			key, value, at = m[1], strings.TrimSpace(m[2]), before+i+1
			if value == "|" || value == ">" || value == "|-" || value == ">-" {
				value = ""
			}
			continue
		}
		if strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t") {
			value = strings.TrimSpace(value + " " + strings.TrimSpace(line))
		}
	}
	flush()
}

// unquote takes the quotes from around a value.
func unquote(value string) string {
	if n := len(value); n >= 2 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
		return value[1 : n-1]
	}
	return value
}
