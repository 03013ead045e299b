package policy

import (
	"strings"

	"zcoder/internal/shellread"
)

// empties refuses to remove all empty directories of a system or a home.
func (g guard) empties(c shellread.Command) string {
	_, operands := split(c.Words)
	for _, w := range operands {
		if !strings.HasSuffix(w.Pattern, "/**") {
			continue
		}
		if what, ok := g.anyLoss(c, w, true, notWorkspace); ok {
			return "rmdir would remove every empty directory in " + what
		}
	}
	return ""
}

// cleans refuses git clean of a system or a home.
func (g guard) cleans(c shellread.Command) string {
	words := c.Words[min(1, len(c.Words)):]
	tree := shellread.Word{Value: ".", Known: true}
	i := 0
	for ; i < len(words) && strings.HasPrefix(words[i].Value, "-"); i++ {
		switch name, value, given := strings.Cut(words[i].Value, "="); {
		case name == "--work-tree" && given:
			tree.Value = value
		case name == "--work-tree" && i+1 < len(words):
			i++
			tree = words[i]
		case name == "-C" || name == "-c" || !given && (name == "--git-dir" || name == "--namespace" || name == "--config-env"):
			i++
		}
	}
	if i >= len(words) || words[i].Value != "clean" {
		return ""
	}
	f, operands := split(withoutExcludes(words[i:]))
	if !f.has("f", "force") || f.has("n", "dry-run") {
		return ""
	}
	if len(operands) == 0 {
		operands = []shellread.Word{tree}
	}
	for _, w := range operands {
		if what, ok := g.anyLoss(c, w, true, notWorkspace); ok {
			return "git clean would delete what is not tracked in " + what
		}
	}
	return ""
}

// withoutExcludes leaves out -e and --exclude with the value that follows them.
func withoutExcludes(words []shellread.Word) []shellread.Word {
	var out []shellread.Word
	for i := 0; i < len(words); i++ {
		letters, ends := strings.CutSuffix(words[i].Value, "e")
		switch {
		case words[i].Value == "--exclude":
			i++
		case isCluster(words[i].Value) && ends:
			i++
			if len(letters) > 1 {
				out = append(out, shellread.Word{Value: letters, Known: true})
			}
		default:
			out = append(out, words[i])
		}
	}
	return out
}

func isCluster(text string) bool {
	return len(text) > 1 && text[0] == '-' && text[1] != '-'
}

// packs refuses tar --remove-files of something protected.
func (g guard) packs(c shellread.Command, base string) string {
	t := tarCall{here: c}
	t.read(c.Words[min(1, len(c.Words)):])
	if !t.removes || !t.creates {
		return ""
	}
	for _, w := range t.members {
		if what, ok := g.anyLoss(c, w, true, anyKind); ok {
			return base + " would remove, once it is packed, " + what
		}
	}
	return ""
}

// tarCall is what the arguments of tar ask for.
type tarCall struct {
	here             shellread.Command // with the directory that the next member is in
	members          []shellread.Word
	removes, creates bool
}

func (t *tarCall) read(words []shellread.Word) {
	for i := 0; i < len(words); i++ {
		text := words[i].Value
		switch {
		case strings.HasPrefix(text, "--"):
			i += t.long(text, words[i+1:])
		case isCluster(text):
			i += t.letters(text[1:], true, words[i+1:])
		case i == 0:
			i += t.letters(text, false, words[1:])
		default:
			t.members = append(t.members, placedIn(t.here, words[i]))
		}
	}
}

// long reads a long option and returns how many of the following words it takes.
func (t *tarCall) long(text string, next []shellread.Word) int {
	given, value, joined := strings.Cut(text, "=")
	is := func(option string) bool { return len(given) > 3 && strings.HasPrefix(option, given) }
	t.removes = t.removes || is("--remove-files")
	t.creates = t.creates || is("--create") || is("--append") || is("--update")
	taken := 0
	if !joined && tarTakes(given) && len(next) > 0 {
		value, taken = next[0].Value, 1
	}
	if given == "--directory" {
		t.here = inDir(t.here, value)
	}
	return taken
}

// letters reads short options. In a cluster with a dash the rest of it is a value, else
// the values of all follow in order.
func (t *tarCall) letters(letters string, dash bool, next []shellread.Word) int {
	taken := 0
	for at, letter := range letters {
		t.creates = t.creates || letter == 'c' || letter == 'r' || letter == 'u'
		if !strings.ContainsRune("fCTXbgHIKLNV", letter) {
			continue
		}
		value := letters[at+1:]
		joined := dash && value != ""
		if !joined && taken < len(next) {
			value = next[taken].Value
			taken++
		}
		if letter == 'C' {
			t.here = inDir(t.here, value)
		}
		if joined {
			break
		}
	}
	return taken
}

func tarTakes(option string) bool {
	switch option {
	case "--file", "--directory", "--exclude", "--files-from", "--exclude-from", "--use-compress-program", "--transform", "--owner", "--group", "--mode", "--newer", "--listed-incremental":
		return true
	}
	return false
}

func inDir(c shellread.Command, name string) shellread.Command {
	c.Dir, c.OtherDirs = resolveIn(c.Dir, name), nil
	return c
}

// placedIn makes a word absolute where tar has changed its directory.
func placedIn(c shellread.Command, w shellread.Word) shellread.Word {
	if !w.Known || w.Value == "" || c.Dir == "" || strings.HasPrefix(w.Value, "/") || len(c.OtherDirs) > 0 {
		return w
	}
	dir := strings.TrimSuffix(c.Dir, "/") + "/"
	w.Value = dir + w.Value
	if w.Pattern != "" {
		w.Pattern = escaped(dir) + w.Pattern
	}
	return w
}
