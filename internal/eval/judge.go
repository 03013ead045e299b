package eval

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"zcoder/internal/event"
)

// judge says what is wrong with an outcome, or "". The error means that the workspace
// could not be read.
func (s Scenario) judge(dir string, out Outcome) (string, error) {
	if out.End.Reason != event.Complete {
		return strings.TrimSuffix(fmt.Sprintf("the turn ended with %s: %s", out.End.Reason, out.End.Text), ": "), nil
	}
	files, err := found(dir)
	if err != nil {
		return "", fmt.Errorf("read the workspace afterwards: %w", err)
	}
	if why := s.judgeFiles(files); why != "" {
		return why, nil
	}
	for _, r := range s.ran {
		if why := r.judge(out.End.Commands); why != "" {
			return why, nil
		}
	}
	return s.judgeAnswer(out.Answer), nil
}

// judgeFiles wants the files that are named as they should be, and all others as they
// were. Line ends at the end of a file do not count.
func (s Scenario) judgeFiles(files map[string]string) string {
	expected := maps.Clone(s.files)
	maps.Copy(expected, s.want)
	for _, name := range slices.Sorted(maps.Keys(expected)) {
		got, ok := files[name]
		switch {
		case !ok:
			return fmt.Sprintf("%s is not there", name)
		case withLineEnd(got) == withLineEnd(expected[name]):
		case s.want[name] == "":
			return fmt.Sprintf("%s was changed", name)
		default:
			return fmt.Sprintf("%s is not as asked for", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if _, ok := expected[name]; !ok {
			return fmt.Sprintf("%s was made without being asked for", name)
		}
	}
	return ""
}

func (r ran) judge(commands []event.Ran) string {
	seen := fmt.Sprintf("%s did not run", r.command)
	for _, c := range commands {
		if !strings.Contains(c.Summary, r.command) {
			continue
		}
		if c.Exit != nil && *c.Exit == r.exit {
			return ""
		}
		seen = fmt.Sprintf("%s did not end with status %d", r.command, r.exit)
	}
	return seen
}

func (s Scenario) judgeAnswer(answer string) string {
	low := strings.ToLower(answer)
	for _, text := range s.answers {
		if !strings.Contains(low, strings.ToLower(text)) {
			return fmt.Sprintf("the answer lacks %q", text)
		}
	}
	switch {
	case strings.TrimSpace(answer) == "":
		return "there is no answer"
	case s.match != nil && !s.match.MatchString(answer):
		return "the answer is not one that was asked for"
	case s.exact != "" && !strings.EqualFold(strings.Trim(answer, " \t\n.!*`\""), s.exact):
		return fmt.Sprintf("the answer is not %q alone", s.exact)
	}
	return ""
}
