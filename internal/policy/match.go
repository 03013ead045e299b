package policy

import (
	"path"
	"slices"
	"strings"

	"zcoder/internal/approval"
	"zcoder/internal/shellread"
)

// match is a rule that applies, with what it matched.
type match struct {
	rule *rule
	what string
}

func (m *match) name() string {
	return m.rule.decision.String() + " rule " + quote(m.rule.text()) + " (" + m.rule.source + ")"
}

func (m *match) reason(otherwise string) string {
	reason := otherwise
	if m.rule.reason != "" {
		reason = m.rule.reason
	}
	switch {
	case m.what == "":
		return reason
	case reason == "":
		return m.what
	}
	return reason + ": " + m.what
}

func quote(text string) string { return `"` + text + `"` }

// text is the first pattern of a rule, which names it to people.
func (r *rule) text() string {
	switch {
	case len(r.commands) > 0:
		return strings.Join(r.commands[0], " ")
	case len(r.tools) > 0:
		return r.tools[0]
	}
	return r.paths[0]
}

// match finds the first deny or ask rule that applies.
func (c *considered) match(d approval.Decision) *match {
	if c.rules == nil {
		return nil
	}
	for i := range c.rules.list {
		r := &c.rules.list[i]
		if r.decision != d {
			continue
		}
		if what, ok := c.applies(r); ok {
			m := &match{rule: r, what: what}
			c.say(m.name(), "applies: "+m.reason(""))
			return m
		}
		c.say((&match{rule: r}).name(), "does not apply")
	}
	return nil
}

// applies reports whether a deny or ask rule covers any part of the request.
func (c *considered) applies(r *rule) (string, bool) {
	if len(r.tools) > 0 && !matchesTool(r.tools, c.r.Tool) {
		return "", false
	}
	if len(r.commands) > 0 {
		if c.r.Effect != approval.Exec {
			return "", false
		}
		return c.appliesToCommand(r)
	}
	if len(r.paths) == 0 {
		return c.r.Tool, true
	}
	for _, use := range c.r.Paths {
		if c.facts.matchesPath(r.paths, use.Path, true) {
			return shown(use), true
		}
	}
	for _, cmd := range c.reading.Commands {
		for _, name := range c.names(cmd) {
			if c.facts.matchesPath(r.paths, name, true) {
				return name, true
			}
		}
	}
	for _, name := range c.reading.Reads {
		if c.facts.matchesPath(r.paths, name, true) {
			return name, true
		}
	}
	return c.writesMatching(r)
}

func (c *considered) writesMatching(r *rule) (string, bool) {
	for _, w := range c.reading.Writes {
		if w.Path != "" && c.facts.matchesPath(r.paths, w.Path, true) {
			return w.Path, true
		}
	}
	return "", false
}

// appliesToCommand judges each part of a command; a part that cannot be read counts
// as matching.
func (c *considered) appliesToCommand(r *rule) (string, bool) {
	for _, cmd := range c.reading.Commands {
		for _, pattern := range r.commands {
			if !pattern.covers(cmd) {
				continue
			}
			if len(r.paths) == 0 || c.touches(r, cmd) {
				return brief(cmd.Text), true
			}
		}
	}
	if len(c.reading.Opaque) > 0 {
		o := c.reading.Opaque[0]
		return "a part cannot be read, so it counts as matching: " + brief(o.Text), true
	}
	return "", false
}

// touches reports whether a command names a path of the rule, or one that cannot be
// known.
func (c *considered) touches(r *rule, cmd shellread.Command) bool {
	for _, w := range cmd.Words[1:] {
		if !w.Known || w.Pattern != "" {
			return true
		}
	}
	for _, name := range c.names(cmd) {
		if c.facts.matchesPath(r.paths, name, true) {
			return true
		}
	}
	_, ok := c.writesMatching(r)
	return ok
}

// names lists the absolute paths that the arguments of a command may stand for.
func (c *considered) names(cmd shellread.Command) []string {
	if cmd.Elsewhere != "" {
		return nil
	}
	var out []string
	add := func(text string) {
		switch {
		case text == "":
		case path.IsAbs(text):
			out = append(out, path.Clean(text))
		default:
			for _, dir := range append([]string{cmd.Dir}, cmd.OtherDirs...) {
				if dir != "" {
					out = append(out, path.Join(dir, text))
				}
			}
		}
	}
	for _, w := range cmd.Words[min(1, len(cmd.Words)):] {
		if !w.Known {
			continue
		}
		add(strings.TrimPrefix(w.Value, "@"))
		if _, value, ok := strings.Cut(w.Value, "="); ok {
			add(value)
		}
	}
	return out
}

// covers is how deny and ask rules match: the program by its base name, the words in
// order with options between them, options anywhere after them.
func (p commandPattern) covers(cmd shellread.Command) bool {
	if len(cmd.Words) == 0 || !sameProgram(p[0], cmd.Program) {
		return false
	}
	words := cmd.Words[1:]
	i, skipped := 0, false
	for _, want := range p[1:] {
		if strings.HasPrefix(want, "-") {
			if !hasOption(words, want) {
				return false
			}
			continue
		}
		found := false
		for ; i < len(words) && !found; i++ {
			w := words[i]
			switch {
			case !w.Known || w.Value == want:
				found, skipped = true, false
			case strings.HasPrefix(w.Value, "-"):
				skipped = !strings.Contains(w.Value, "=")
			case skipped:
				skipped = false
			default:
				return false
			}
		}
		if !found {
			return false
		}
	}
	return true
}

func sameProgram(want, program string) bool {
	if strings.Contains(want, "/") {
		return want == program
	}
	return want == path.Base(program)
}

// hasOption reports whether an option is given, perhaps: in a cluster, with a value,
// abbreviated, or in a word that cannot be known.
func hasOption(words []shellread.Word, want string) bool {
	for _, w := range words {
		if !w.Known {
			return true
		}
		given, _, _ := strings.Cut(w.Value, "=")
		switch {
		case given == want:
			return true
		case strings.HasPrefix(want, "--"):
			if len(given) > 4 && strings.HasPrefix(want, given) {
				return true
			}
		case strings.HasPrefix(given, "-") && !strings.HasPrefix(given, "--"):
			if containsAll(given[1:], want[1:]) {
				return true
			}
		}
	}
	letters := want[1:]
	if strings.HasPrefix(want, "--") || len(letters) < 2 {
		return false
	}
	for _, letter := range letters {
		if !hasOption(words, "-"+string(letter)) {
			return false
		}
	}
	return true
}

func containsAll(text, letters string) bool {
	for _, letter := range letters {
		if !strings.ContainsRune(text, letter) {
			return false
		}
	}
	return true
}

// allows finds the allow rules that together cover every part of a command. It
// returns the rule of the first part.
func (c *considered) allows() *match {
	if c.rules == nil || !slices.ContainsFunc(c.rules.list, func(r rule) bool { return r.decision == approval.Allow }) {
		return nil
	}
	var whole *rule
	for i := range c.rules.list {
		r := &c.rules.list[i]
		if r.decision == approval.Allow && len(r.commands) == 0 && len(r.paths) == 0 && matchesTool(r.tools, c.r.Tool) {
			whole = r
		}
	}
	if whole != nil {
		m := &match{rule: whole}
		c.say(m.name(), "covers the whole command")
		return m
	}
	if why := c.beyondRules(); why != "" {
		c.say("allow rules", "do not cover it: "+why)
		return nil
	}
	var first *rule
	for _, cmd := range c.reading.Commands {
		r := c.allowFor(cmd)
		if r == nil && !c.harmless(cmd) {
			c.say("allow rules", "none covers "+brief(cmd.Text))
			return nil
		}
		if first == nil {
			first = r
		}
	}
	if first == nil {
		c.say("allow rules", "none is needed, none applies")
		return nil
	}
	m := &match{rule: first}
	c.say(m.name(), "covers it, each part by a rule")
	return m
}

// beyondRules says what in a command no allow rule for commands covers.
func (c *considered) beyondRules() string {
	r := c.reading
	switch {
	case len(r.Opaque) > 0:
		return "a part cannot be read: " + brief(r.Opaque[0].Text)
	case len(r.Background) > 0 || len(r.Detached) > 0:
		return "it starts something in the background"
	}
	for _, name := range r.Reads {
		if c.facts.private(name, false) {
			return "it reads " + name + ", which is secret or zcoder's own"
		}
	}
	for _, w := range r.Writes {
		if w.By == "redirection" || w.Aside {
			return "it writes " + brief(w.Text)
		}
	}
	return ""
}

// allowFor finds the allow rule for one program.
func (c *considered) allowFor(cmd shellread.Command) *rule {
	if cmd.Elsewhere != "" || cmd.Shadowed {
		return nil
	}
	for _, a := range cmd.Env {
		if !shellread.IsNeutral(a.Name) {
			return nil
		}
	}
	for i := range c.rules.list {
		r := &c.rules.list[i]
		if r.decision != approval.Allow || len(r.tools) > 0 && !matchesTool(r.tools, c.r.Tool) {
			continue
		}
		for _, pattern := range r.commands {
			if !pattern.begins(cmd) || !c.within(r, cmd, len(pattern)) {
				continue
			}
			switch name, option := c.private(r, cmd), starts(cmd, len(pattern)); {
			case name != "":
				c.say((&match{rule: r}).name(), "does not cover reading "+name+", which is secret or zcoder's own")
			case option != "":
				c.say((&match{rule: r}).name(), "does not cover "+option+", which runs what settings name")
			default:
				return r
			}
		}
	}
	return nil
}

// begins is how allow rules match: the program as it is written and exactly these
// words first, and nothing unknown behind them.
func (p commandPattern) begins(cmd shellread.Command) bool {
	if len(cmd.Words) < len(p) || cmd.Program != p[0] {
		return false
	}
	for i, w := range cmd.Words {
		if !w.Known || strings.IndexAny(w.Pattern, "*?[") == 0 {
			return false
		}
		if i < len(p) && (w.Value != p[i] || w.Pattern != "") {
			return false
		}
	}
	return true
}

// within reports whether all operands of a command lie in the paths of a rule that
// has any.
func (c *considered) within(r *rule, cmd shellread.Command, words int) bool {
	if len(r.paths) == 0 {
		return true
	}
	for _, w := range cmd.Words[words:] {
		if strings.HasPrefix(w.Value, "-") {
			if strings.Contains(w.Value, "=") {
				return false
			}
			continue
		}
		name := w.Value
		if !path.IsAbs(name) {
			if cmd.Dir == "" || len(cmd.OtherDirs) > 0 {
				return false
			}
			name = path.Join(cmd.Dir, name)
		}
		if !c.facts.matchesPath(r.paths, path.Clean(name), false) {
			return false
		}
	}
	return true
}

// harmless lists what needs no rule of its own beside commands that have one: shell
// words that change nothing, and wrappers that change nothing about what they run.
func (c *considered) harmless(cmd shellread.Command) bool {
	if cmd.Elsewhere != "" {
		return false
	}
	if cmd.Shadowed {
		return cmd.Wrapper // a function, whose body is judged
	}
	for _, a := range cmd.Env {
		if !shellread.IsNeutral(a.Name) {
			return false
		}
	}
	switch cmd.Program {
	case ":", "true", "false", "[[", "((", "[", "test", "echo", "pwd":
		return true
	case "cd":
		return len(cmd.Words) == 2 && cmd.Words[1].Known && cmd.Words[1].Pattern == "" && inside(c.facts.Root, resolveIn(cmd.Dir, cmd.Words[1].Value))
	case "time", "nice", "ionice", "timeout", "stdbuf", "command", "builtin", "noglob", "nocorrect", "-", "sh", "bash", "zsh":
		return cmd.Wrapper
	}
	return false
}

func resolveIn(dir, name string) string {
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	if dir == "" {
		return ""
	}
	return path.Join(dir, name)
}

// inside reports whether a clean path is a directory or lies in it, by components.
func inside(dir, name string) bool {
	return name == dir || dir == "/" && path.IsAbs(name) || strings.HasPrefix(name, dir+"/")
}

// allowsPaths finds an allow rule that names every path of the request.
func (c *considered) allowsPaths() *match {
	if c.rules == nil || len(c.r.Paths) == 0 {
		return nil
	}
	var first *rule
	for _, use := range c.r.Paths {
		r := c.allowForPath(use.Path)
		if r == nil {
			return nil
		}
		if first == nil {
			first = r
		}
	}
	return &match{rule: first}
}

func (c *considered) allowForPath(name string) *rule {
	for i := range c.rules.list {
		r := &c.rules.list[i]
		if r.decision == approval.Allow && len(r.commands) == 0 && len(r.paths) > 0 &&
			(len(r.tools) == 0 || matchesTool(r.tools, c.r.Tool)) && c.facts.matchesPath(r.paths, name, false) {
			return r
		}
	}
	return nil
}

func matchesTool(patterns []string, tool string) bool {
	for _, p := range patterns {
		if ok, _ := path.Match(p, tool); ok {
			return true
		}
	}
	return false
}

// matchesPath reports whether a clean absolute path, or a directory that it lies in,
// matches a pattern. Fold ignores letter case, for rules that restrict.
func (f Facts) matchesPath(patterns []string, name string, fold bool) bool {
	if fold {
		name = strings.ToLower(name)
	}
	parts := strings.Split(strings.Trim(name, "/"), "/")
	for _, p := range patterns {
		if rest, ok := strings.CutPrefix(p, "~/"); ok && f.Home != "" {
			p = path.Join(f.Home, rest)
		} else if strings.Contains(strings.TrimSuffix(p, "/"), "/") && !strings.HasPrefix(p, "/") {
			p = path.Join(f.Root, p)
		}
		if fold {
			p = strings.ToLower(p)
		}
		if !strings.Contains(strings.Trim(p, "/"), "/") && !strings.HasPrefix(p, "/") {
			for _, part := range parts {
				if ok, _ := path.Match(strings.Trim(p, "/"), part); ok {
					return true
				}
			}
			continue
		}
		if matchParts(strings.Split(strings.Trim(p, "/"), "/"), parts) {
			return true
		}
	}
	return false
}

// matchParts matches leading components; ** stands for any number of them, of which
// the parser of rules lets few through.
func matchParts(pattern, parts []string) bool {
	if len(pattern) == 0 {
		return true
	}
	if pattern[0] == "**" {
		for i := 0; i <= len(parts); i++ {
			if matchParts(pattern[1:], parts[i:]) {
				return true
			}
		}
		return false
	}
	if len(parts) == 0 {
		return false
	}
	ok, _ := path.Match(pattern[0], parts[0])
	return ok && matchParts(pattern[1:], parts[1:])
}

func brief(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if cut := []rune(text); len(cut) > 80 {
		return string(cut[:80]) + "…"
	}
	return text
}
