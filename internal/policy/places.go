package policy

import (
	"path"
	"strings"

	"zcoder/internal/shellread"
)

// protected is a directory whose loss is a catastrophe.
type protected struct {
	path string
	what string // in words
	kind kind
}

type kind uint8

const (
	systemKind kind = iota // the root and directories of the system
	homeKind
	workspaceKind
	mountKind
)

// systemDirs are directories that a system cannot run without, on linux and darwin.
// Scratch directories and single packages below them are not among them.
var systemDirs = [...]string{
	"/bin", "/boot", "/boot/efi", "/boot/grub", "/dev", "/etc", "/home", "/lib", "/lib32", "/lib64", "/libx32", "/media", "/mnt", "/nix", "/nix/store", "/opt",
	"/proc", "/root", "/run", "/sbin", "/snap", "/srv", "/sys", "/usr", "/usr/bin", "/usr/include", "/usr/lib", "/usr/lib32", "/usr/lib64", "/usr/libexec", "/usr/local",
	"/usr/local/bin", "/usr/local/lib", "/usr/local/sbin", "/usr/sbin", "/usr/share", "/usr/src", "/var", "/var/lib", "/var/spool",
	"/Applications", "/Library", "/Network", "/System", "/System/Library", "/System/Volumes", "/Users", "/Volumes", "/cores", "/private", "/private/etc", "/private/var", "/opt/homebrew",
}

// places lists what the guard protects.
func (f Facts) places() []protected {
	out := []protected{{"/", "the whole file system", systemKind}}
	for _, dir := range systemDirs {
		out = append(out, protected{dir, "the system directory " + dir, systemKind})
	}
	add := func(dir, what string, k kind) {
		if path.IsAbs(dir) && path.Clean(dir) != "/" {
			out = append(out, protected{path.Clean(dir), what, k})
		}
	}
	add(f.Home, "the home directory "+f.Home, homeKind)
	for _, dir := range f.OtherHomes {
		add(dir, "the home directory "+dir, homeKind)
	}
	add(f.Root, "the workspace "+f.Root, workspaceKind)
	for _, dir := range f.MountPoints {
		switch path.Clean(dir) {
		case "/tmp", "/var/tmp", "/private/tmp", "/dev/shm":
		default:
			add(dir, "the file system mounted at "+dir, mountKind)
		}
	}
	return out
}

// target is something that a command names as an argument.
type target struct {
	raw     string // absolute, not cleaned: the kernel resolves links before ".."
	pattern string // absolute pattern; "" when it is a plain name
	follow  bool   // the directory that a link leads to is meant, not the link
	literal bool   // it is not a path of this machine: compare by text only
}

// exists reports whether a directory is known to be there: a change to it succeeds.
func (g guard) exists(dir string) bool {
	if dir == "" || g.facts.Identity == nil {
		return false
	}
	_, _, ok := g.facts.Identity(dir)
	return ok
}

// targets are what a word of a command may stand for on this machine. For a command
// elsewhere these are the parts of mounted directories; with literal, also the text
// itself.
func (g guard) targets(c shellread.Command, w shellread.Word) []target {
	var out []target
	if c.Elsewhere == "" {
		dirs := []string{c.Dir}
		if !path.IsAbs(w.Value) && !g.exists(c.Dir) {
			dirs = append(dirs, c.OtherDirs...)
		}
		for _, dir := range dirs {
			if t, ok := absolute(dir, w); ok {
				out = append(out, t)
			}
		}
		return out
	}
	t, ok := absolute(c.Dir, w)
	if !ok {
		return nil
	}
	for _, m := range c.Mounts {
		if mapped, ok := t.through(m); ok {
			out = append(out, mapped)
		}
	}
	if g.elsewhere {
		t.literal = true
		out = append(out, t)
	}
	return out
}

// absolute makes a word a target; it reports false when the word cannot be known.
func absolute(dir string, w shellread.Word) (target, bool) {
	if !w.Known || w.Value == "" {
		return target{}, false
	}
	if !path.IsAbs(w.Value) && dir == "" {
		return target{}, false
	}
	t := target{raw: w.Value, pattern: w.Pattern}
	if !path.IsAbs(w.Value) {
		t.raw = strings.TrimSuffix(dir, "/") + "/" + w.Value
		if w.Pattern != "" {
			t.pattern = strings.TrimSuffix(escaped(dir), "/") + "/" + w.Pattern
		}
	}
	last := t.raw[strings.LastIndexByte(t.raw, '/')+1:]
	t.follow = last == "" || last == "." || last == ".."
	return t, true
}

func escaped(text string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(text)
}

// through translates a target that a command elsewhere names to what it is here.
func (t target) through(m shellread.Mount) (target, bool) {
	insideParts, parts := components(escaped(m.Inside)), components(t.asPattern())
	if len(parts) > len(insideParts) {
		for i, part := range insideParts {
			if part != parts[i] {
				return target{}, false
			}
		}
		rest := strings.Join(parts[len(insideParts):], "/")
		out := target{raw: strings.TrimSuffix(m.Host, "/") + "/" + unescaped(rest), follow: t.follow}
		if t.pattern != "" {
			out.pattern = strings.TrimSuffix(escaped(m.Host), "/") + "/" + rest
		}
		return out, true
	}
	for k := len(parts); k >= 0; k-- {
		if allBroad(parts[k:]) && matchesPrefix(parts[:k], components(m.Inside)) {
			return target{raw: m.Host, follow: true}, true
		}
	}
	return target{}, false
}

func (t target) asPattern() string {
	if t.pattern != "" {
		return t.pattern
	}
	return escaped(t.raw)
}

// components splits a path or pattern, with "." and ".." taken out by the text.
func components(name string) []string {
	var out []string
	for _, part := range strings.Split(name, "/") {
		switch part {
		case "", ".":
		case "..":
			out = out[:max(len(out)-1, 0)]
		default:
			out = append(out, part)
		}
	}
	return out
}

func unescaped(pattern string) string {
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		if pattern[i] == '\\' && i+1 < len(pattern) {
			i++
		}
		b.WriteByte(pattern[i])
	}
	return b.String()
}

func isLiteral(part string) bool {
	for i := 0; i < len(part); i++ {
		switch part[i] {
		case '\\':
			i++
		case '*', '?', '[':
			return false
		}
	}
	return true
}

// matchesPrefix reports whether a pattern matches a path or a directory above it.
func matchesPrefix(pattern, name []string) bool {
	if len(pattern) > len(name) {
		return false
	}
	for i, part := range pattern {
		if part == "**" {
			return true
		}
		if ok, err := path.Match(part, name[i]); !ok || err != nil {
			return false
		}
	}
	return true
}

// allBroad reports whether components match about everything in a directory.
func allBroad(parts []string) bool {
	for _, part := range parts {
		if !isBroad(part) {
			return false
		}
	}
	return true
}

// isBroad reports whether a component matches names of every sort, or every hidden
// name.
func isBroad(part string) bool {
	if isLiteral(part) {
		return false
	}
	if strings.Trim(part, "*") == "" {
		return true
	}
	for _, samples := range [...][]string{{"README.md", "main.go", "src", "Makefile", "2024"}, {".git", ".bashrc", ".x1"}} {
		all := true
		for _, name := range samples {
			if ok, err := path.Match(part, name); !ok || err != nil {
				all = false
			}
		}
		if all {
			return true
		}
	}
	return false
}

// loss is what goes when everything at a target goes: a protected directory of a kind
// that counts, in words. Without recursion only the files right in a directory go, so
// a plain name is no loss and a pattern for all in it is.
func (g guard) loss(t target, recursive bool, counts func(kind) bool) (string, bool) {
	parts := components(t.asPattern())
	for k := len(parts); k >= 0; k-- {
		rest := parts[k:]
		if !allBroad(rest) {
			break
		}
		if len(rest) == 0 && !recursive {
			continue
		}
		if what, ok := g.covers(t, parts[:k], len(rest) > 0, counts); ok {
			return what, true
		}
	}
	return "", false
}

// covers finds a protected directory at or below what the components name.
func (g guard) covers(t target, prefix []string, contents bool, counts func(kind) bool) (string, bool) {
	places := g.facts.places()
	name := "/" + unescaped(strings.Join(prefix, "/"))
	found := ""
	plain := true
	for _, part := range prefix {
		plain = plain && isLiteral(part)
	}
	for _, p := range places {
		own := components(p.path)
		if !counts(p.kind) || !matchesPrefix(prefix, own) {
			continue
		}
		if len(own) == len(prefix) {
			return p.what, true
		}
		if found == "" {
			found = name + ", which holds " + p.what
			if !plain {
				found = p.what
			}
		}
	}
	switch {
	case found != "":
		return found, true
	case anyHome(prefix) && counts(homeKind):
		return "the home directory " + name, true
	case t.literal || !plain:
		return "", false
	case !contents:
		name = t.raw
	}
	return g.sameFile(name, contents || t.follow, places, counts)
}

// anyHome reports whether components name a home directory by its usual place.
func anyHome(prefix []string) bool {
	return len(prefix) == 2 && (prefix[0] == "home" || prefix[0] == "Users") && prefix[1] != "Shared"
}

// sameFile compares by identity, with protected directories and all above them.
func (g guard) sameFile(name string, follow bool, places []protected, counts func(kind) bool) (string, bool) {
	if g.facts.Identity == nil || !follow && g.facts.IsLink != nil && g.facts.IsLink(strings.TrimRight(name, "/")) {
		return "", false
	}
	dev, ino, ok := g.facts.Identity(name)
	if !ok {
		return "", false
	}
	for _, p := range places {
		if !counts(p.kind) {
			continue
		}
		for dir := p.path; ; dir = path.Dir(dir) {
			if d, i, ok := g.facts.Identity(dir); ok && d == dev && i == ino {
				return p.what, true
			}
			if dir == "/" {
				break
			}
		}
	}
	return "", false
}
