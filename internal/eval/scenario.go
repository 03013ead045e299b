package eval

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// Scenario is one piece of work with its judgement. It is made by Scenarios only.
type Scenario struct {
	Name   string
	About  string   // what it shows, in a few words
	Prompt string   // what the model is asked
	Allow  []string // the beginnings of the commands that may run
	Rounds int      // the most replies

	files map[string]string // the workspace, by slashed path
	want  map[string]string // files that must have this content afterwards
	// answers must all stand in the answer, whatever the letter case.
	answers []string
	match   *regexp.Regexp // must match the answer; nil: anything
	exact   string         // the answer but for blanks, letter case and a full stop; "": anything
	ran     []ran
}

// ran is a command that must have run and ended with a status.
type ran struct {
	command string // part of its summary
	exit    int
}

// defaultRounds is enough for every scenario done in the clumsiest way that works.
const defaultRounds = 12

//go:embed scenarios/*.txt
var embedded embed.FS

// Scenarios returns the scenarios of these names in the order of the files, or all
// without a name. The error names an unknown one, and all that there are.
func Scenarios(names ...string) ([]Scenario, error) {
	entries, err := embedded.ReadDir("scenarios")
	if err != nil {
		return nil, err
	}
	wanted := map[string]bool{}
	for _, name := range names {
		wanted[name] = true
	}
	var list []Scenario
	var known []string
	for _, e := range entries {
		data, err := embedded.ReadFile(path.Join("scenarios", e.Name()))
		if err != nil {
			return nil, err
		}
		// The number before the name is the order.
		_, name, _ := strings.Cut(strings.TrimSuffix(e.Name(), ".txt"), "-")
		s, err := parse(name, string(data))
		if err != nil {
			return nil, fmt.Errorf("scenario %q: %w", name, err)
		}
		known = append(known, name)
		if len(names) == 0 || wanted[name] {
			list = append(list, s)
			delete(wanted, name)
		}
	}
	for _, name := range names {
		if wanted[name] {
			return nil, fmt.Errorf("there is no scenario %q, only %s", name, strings.Join(known, ", "))
		}
	}
	return list, nil
}

// parse reads a scenario: lines "key: value", then files, each after a line
// "-- PATH --". A path below want/ is what the file must be afterwards.
//
//	about: TEXT        what it shows
//	prompt: TEXT       what is asked
//	allow: COMMAND     a command that begins so may run; may stand several times
//	rounds: N          the most replies
//	fill: PATH N       N lines of filling; the text of the file stands in their middle
//	answer: TEXT       must stand in the answer; may stand several times
//	answer-match: RE   must match the answer
//	answer-is: TEXT    is the whole answer, but for blanks, letter case and a full stop
//	ran: COMMAND = N   a command with this text must have ended with status N
func parse(name, text string) (Scenario, error) {
	s := Scenario{Name: name, Rounds: defaultRounds, files: map[string]string{}, want: map[string]string{}}
	head, rest, _ := strings.Cut(text, "\n-- ")
	fills := map[string]int{}
	for line := range strings.Lines(head) {
		if err := s.set(strings.TrimSpace(line), fills); err != nil {
			return s, err
		}
	}
	for part := range strings.SplitSeq(rest, "\n-- ") {
		file, content, ok := strings.Cut(part, " --\n")
		if !ok {
			continue
		}
		if after, ok := strings.CutPrefix(file, "want/"); ok {
			s.want[after] = withLineEnd(content)
		} else {
			s.files[file] = withLineEnd(content)
		}
	}
	for file, n := range fills {
		s.files[file] = fill(n/2, 1) + s.files[file] + fill(n-n/2, n/2+1)
	}
	if s.About == "" || s.Prompt == "" {
		return s, fmt.Errorf("it needs about and prompt")
	}
	return s, nil
}

func withLineEnd(text string) string { return strings.TrimRight(text, "\n") + "\n" }

// set takes one line of the head.
func (s *Scenario) set(line string, fills map[string]int) (err error) {
	key, value, _ := strings.Cut(line, ": ")
	switch key {
	case "":
	case "about":
		s.About = value
	case "prompt":
		s.Prompt = value
	case "allow":
		s.Allow = append(s.Allow, value)
	case "rounds":
		s.Rounds, err = strconv.Atoi(value)
	case "fill":
		file, n, _ := strings.Cut(value, " ")
		fills[file], err = strconv.Atoi(n)
	case "answer":
		s.answers = append(s.answers, value)
	case "answer-match":
		s.match, err = regexp.Compile(value)
	case "answer-is":
		s.exact = value
	case "ran":
		command, status, _ := strings.Cut(value, " = ")
		var exit int
		exit, err = strconv.Atoi(status)
		s.ran = append(s.ran, ran{command, exit})
	default:
		err = fmt.Errorf("unknown line %q", line)
	}
	return err
}

// fill makes lines that say nothing, each another.
func fill(n, from int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d: the meeting of day %d went on as planned, and nothing was decided.\n", from+i, (from+i)*7%365)
	}
	return b.String()
}

// unpack writes the files of the workspace.
func (s Scenario) unpack(dir string) error {
	for name, content := range s.files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return fmt.Errorf("unpack scenario %q: %w", s.Name, err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			return fmt.Errorf("unpack scenario %q: %w", s.Name, err)
		}
	}
	return nil
}

// found returns the regular files of a workspace by slashed path. Anything else stands
// with a text that no scenario wants.
func found(dir string) (map[string]string, error) {
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if !e.Type().IsRegular() {
			files[name] = "not a file: " + e.Type().String()
			return nil
		}
		data, err := os.ReadFile(file)
		files[name] = string(data)
		return err
	})
	return files, err
}
