package mcp

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	maxDigest = 64 << 20  // bytes of one file that is pinned
	maxPinned = 256 << 20 // bytes of all files that are pinned for one server
	maxFiles  = 500       // files that are pinned for one server
	maxWords  = 1000      // words of an entry that are looked at
	maxBases  = 16        // directories that words are looked for in
)

// gatherer finds the files that an entry leads to. The rule errs on the side of
// pinning more: every word of the command line, of the environment and of the scripts
// that a package names is pinned if it is a file; for programs that find code by
// themselves, the table of launchers says where.
type gatherer struct {
	root, dir string // the workspace, and where the server runs
	path      string // the server's PATH

	words []string // of the entry, each once
	data  []string // words that name what the server may change
	left  int      // words that may still be looked at
	bases []string // directories that words may count from, dir first
	named []string // directories that words name
	kinds []*launcher
	files map[string]string // by name
	loose []string
	size  int64
	err   error
}

// gather returns the files that the entry leads to, with digests, and what else it can
// run.
func (g *gatherer) gather(s Server, p Program) (map[string]string, []string, error) {
	g.files, g.bases = map[string]string{}, []string{g.dir}
	texts := append([]string{p.Path, p.Real}, s.Args...)
	for _, name := range sortedKeys(s.Env) {
		texts = append(texts, s.Env[name])
	}
	g.left = maxWords
	g.words = g.split(append(texts, interpreter(p.Real)...))
	if g.left == 0 {
		return nil, nil, fmt.Errorf("it has more than %d words, so that what it runs cannot be pinned", maxWords)
	}
	for _, word := range g.words {
		g.learn(word)
	}
	g.setApart(s)
	g.pinWords()
	g.pinRead(p)
	g.lookUp(s.Args, func(file string) {
		if g.pin(file, false); filepath.Base(file) == "package.json" {
			g.pinPackage(filepath.Dir(file))
		}
	})
	return g.files, g.loose, g.err
}

// refuseLookups returns an error when a program of one of the person's own servers
// would find its code, or what decides about it, in the workspace without being told to.
func (g *gatherer) refuseLookups(s Server) (err error) {
	g.bases, g.left = []string{g.dir}, maxWords
	g.words = g.split(append([]string{s.Command}, s.Args...))
	g.lookUp(s.Args, func(file string) {
		if _, missing := os.Lstat(file); missing == nil && g.holds(file) && err == nil {
			err = g.refusal(s, file)
		}
	})
	if file := g.steering(); err == nil && file != "" {
		err = g.refusal(s, file)
	}
	return err
}

func (g *gatherer) refusal(s Server, file string) error {
	return fmt.Errorf("run %q: it would find %s in the workspace, where a model can change it; give the server a cwd outside, or register it with --scope project", s.Command, g.name(file))
}

// steering returns a file of the workspace that would decide what a program runs that
// was not told to look there, or "".
func (g *gatherer) steering() string {
	for _, word := range g.words {
		f, finds := finders[program(word)]
		if !finds || slices.ContainsFunc(f.elsewhere, func(option string) bool { return slices.Contains(g.words, option) }) {
			continue
		}
		for _, dir := range g.upwards() {
			if !g.holds(dir) {
				continue
			}
			for _, name := range f.files {
				file := filepath.Join(dir, name)
				if _, err := os.Lstat(file); err == nil && !harmless(file) {
					return file
				}
			}
			if file := filepath.Join(dir, "package.json"); slices.Contains(packageRunners, program(word)) && g.offeredBy(file, program(word)) {
				return file
			}
		}
	}
	return ""
}

// harmless reports whether a file is settings of npm that say nothing of what runs or
// where code comes from.
func harmless(file string) bool {
	if filepath.Base(file) != ".npmrc" {
		return false
	}
	data, err := readRegular(file, false)
	if err != nil {
		return false
	}
	for line := range strings.FieldsFuncSeq(string(data), func(r rune) bool { return r == '\n' || r == '\r' }) {
		line = strings.TrimSpace(line)
		key, _, _ := strings.Cut(line, "=")
		if line != "" && line[0] != '#' && line[0] != ';' && !slices.Contains(harmlessKeys, strings.TrimSpace(key)) {
			return false
		}
	}
	return true
}

// offeredBy reports whether a package of the workspace has a program, or for a runner of
// scripts a script, by the name of a word, which the runner prefers. One that cannot be
// read may have it.
func (g *gatherer) offeredBy(file, runner string) bool {
	if _, err := os.Lstat(file); err != nil {
		return false
	}
	var p struct {
		Name         string
		Bin, Scripts any
	}
	data, err := readRegular(file, false)
	if err != nil || json.Unmarshal(bytes.TrimPrefix(data, []byte("\ufeff")), &p) != nil {
		return true
	}
	var names []string
	if _, one := p.Bin.(string); one {
		names = append(names, p.Name)
	}
	for i, list := range []any{p.Bin, p.Scripts} {
		if list, ok := list.(map[string]any); ok && (i == 0 || runner != "npx") {
			names = append(names, sortedKeys(list)...)
		}
	}
	return slices.ContainsFunc(names, func(name string) bool {
		base := filepath.Base(name)
		return slices.ContainsFunc(g.words, func(word string) bool {
			return packageName.MatchString(word) && (filepath.Base(word) == base || filepath.Base(unversioned(word)) == base)
		})
	})
}

// split returns texts and the words in them, each once: what stands behind `=`, in
// lists, in the text of a shell, behind the letter of an option.
func (g *gatherer) split(texts []string) []string {
	var list []string
	seen := map[string]bool{}
	add := func(w string) {
		if w != "" && len(w) <= 4096 && !seen[w] && g.left > 0 && !strings.ContainsRune(w, 0) {
			seen[w] = true
			g.left--
			list = append(list, w)
		}
	}
	for _, text := range texts {
		add(text)
		for p := range strings.FieldsFuncSeq(text, parts) {
			if g.left == 0 {
				return list
			}
			add(p)
			add(strings.TrimPrefix(p, "@"))
			if len(p) > 2 && p[0] == '-' && p[1] != '-' {
				add(p[2:])
			}
		}
	}
	return list
}

// parts reports what stands between the words of a text.
func parts(r rune) bool { return strings.ContainsRune(" \t\r\n=:;,|&()<>\"'`{}", r) }

// learn notes a word that names a program which loads code by itself, or a directory.
func (g *gatherer) learn(word string) {
	if dir, ok := g.directory(word); ok {
		if len(g.named) < maxBases {
			g.named = append(g.named, dir)
		}
		if !slices.Contains(g.bases, dir) && len(g.bases) < maxBases {
			g.bases = append(g.bases, dir)
		}
		return
	}
	if k := kindOf(word); k != nil && (!strings.Contains(word, "/") || executable(g.absolute(word)) == nil) {
		g.meet(k)
		if slices.Contains(downloaders, program(word)) {
			g.say("can download code and run it, which this trust does not pin")
		}
	}
}

func (g *gatherer) meet(k *launcher) {
	if !slices.Contains(g.kinds, k) {
		g.kinds = append(g.kinds, k)
		g.say(k.loads)
	}
}

func (g *gatherer) say(text string) {
	if !slices.Contains(g.loose, text) {
		g.loose = append(g.loose, text)
	}
}

// setApart finds the words that name data which a server may change, such as a data
// base or a log. It goes by their endings, and takes nothing for data that a launcher
// or an option runs.
func (g *gatherer) setApart(s Server) {
	var code []string
	first, option := kindOf(s.Command) != nil, ""
	for _, arg := range s.Args {
		name, value, joined := strings.Cut(arg, "=")
		switch {
		case kindOf(arg) != nil:
			first, option = true, ""
		case strings.HasPrefix(arg, "-") && !joined:
			option = arg
		case strings.HasPrefix(arg, "-"):
			g.sort(value, slices.Contains(codeOptions, name), &code)
			option = ""
		default:
			g.sort(arg, first || slices.Contains(codeOptions, option), &code)
			first, option = false, ""
		}
	}
	for _, name := range sortedKeys(s.Env) {
		g.sort(s.Env[name], loadsCode(name), &code)
	}
	g.data = slices.DeleteFunc(g.data, func(word string) bool { return slices.Contains(code, word) })
	for _, word := range g.data {
		g.say("takes " + word + " for data, which this trust does not pin")
	}
}

// sort puts a word with the data or with the code.
func (g *gatherer) sort(word string, runs bool, code *[]string) {
	switch {
	case runs:
		*code = append(*code, word)
	case slices.Contains(dataEndings, strings.ToLower(filepath.Ext(word))) && !slices.Contains(g.data, word):
		g.data = append(g.data, word)
	}
}

// directory returns the directory that a word names, if it lies in the workspace or
// counts from where the server runs.
func (g *gatherer) directory(word string) (string, bool) {
	dir := g.absolute(word)
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() || filepath.IsAbs(word) && !g.holds(dir) {
		return "", false
	}
	return dir, true
}

// pinWords pins every word that names a file, from any directory that is named, or a
// program in a directory of the PATH that lies in the workspace.
func (g *gatherer) pinWords() {
	var search []string
	for _, d := range strings.Split(g.path, ":") {
		if d = g.absolute(d); g.holds(d) {
			search = append(search, d)
		}
	}
	for _, word := range g.words {
		if slices.Contains(g.data, word) {
			continue
		}
		for _, base := range g.bases {
			g.pinWord(base, word)
		}
		for _, d := range search[:min(len(search), maxBases)] {
			if !strings.Contains(word, "/") {
				g.pin(filepath.Join(d, word), false)
			}
		}
	}
}

// pinWord pins what a word names in a directory, with the endings that a program adds.
func (g *gatherer) pinWord(base, word string) {
	relative := !filepath.IsAbs(word)
	if relative {
		word = filepath.Join(base, word)
	}
	g.pin(word, relative)
	for _, k := range g.kinds {
		for _, ending := range k.endings {
			g.pin(word+ending, relative)
		}
	}
}

// pinRead pins what the programs read without being told: settings where they run, and
// what a directory stands for.
func (g *gatherer) pinRead(p Program) {
	g.pin(filepath.Join(filepath.Dir(filepath.Dir(p.Path)), "pyvenv.cfg"), false)
	for _, k := range g.kinds {
		for _, dir := range g.upwards() {
			g.pinEach(dir, k.reads)
		}
		for _, dir := range g.named {
			g.pinEach(dir, k.entries)
			g.pinEach(dir, k.reads)
		}
	}
}

func (g *gatherer) pinEach(dir string, names []string) {
	for _, name := range names {
		g.pin(filepath.Join(dir, name), false)
		if name == "package.json" {
			g.pinPackage(dir)
		}
	}
}

// upwards are the directory that the server runs in and those above it in the
// workspace.
func (g *gatherer) upwards() []string {
	list := []string{g.dir}
	climb := func(dir string) {
		for dir != g.root && g.holds(dir) {
			dir = filepath.Dir(dir)
			list = append(list, dir)
		}
	}
	climb(g.dir)
	// Programs see the directory that a link leads to, and those above that one.
	if real, err := filepath.EvalSymlinks(g.dir); err == nil && real != g.dir && g.holds(real) {
		list = append(list, real)
		climb(real)
	}
	return list
}

// pinPackage pins the files that a package.json names as its code and in its scripts.
func (g *gatherer) pinPackage(dir string) {
	data, err := readRegular(filepath.Join(dir, "package.json"), false)
	if err != nil || !g.holds(dir) {
		return
	}
	list, err := membersLenient(data)
	if err != nil {
		return
	}
	var texts []string
	for _, name := range []string{"main", "module", "bin", "exports", "imports", "scripts"} {
		var v any
		m, ok := memberOf(list, name)
		if !ok || json.Unmarshal(m.raw, &v) != nil {
			continue
		}
		texts = append(texts, stringsIn(v)...)
		if bin, ok := v.(map[string]any); ok && name == "bin" {
			g.pinLinks(sortedKeys(bin))
		}
	}
	words := g.split(texts)
	if g.left == 0 {
		g.say("names more files in " + g.name(filepath.Join(dir, "package.json")) + " than this trust pins")
	}
	for _, word := range words {
		g.pinWord(dir, word)
		g.pinWord(dir, filepath.Join(word, "index"))
	}
}

// pinLinks pins the links in node_modules by which programs of packages are started.
func (g *gatherer) pinLinks(programs []string) {
	for _, name := range programs[:min(len(programs), maxBases)] {
		for _, dir := range append(g.upwards(), g.named...) {
			g.pin(filepath.Join(dir, "node_modules", ".bin", filepath.Base(name)), false)
		}
	}
}

// stringsIn are the strings in a JSON value.
func stringsIn(v any) []string {
	var list []string
	switch v := v.(type) {
	case string:
		list = append(list, v)
	case []any:
		for _, e := range v {
			list = append(list, stringsIn(e)...)
		}
	case map[string]any:
		for _, k := range sortedKeys(v) {
			list = append(list, stringsIn(v[k])...)
		}
	}
	return list
}

var (
	packageName = regexp.MustCompile(`^(@[A-Za-z0-9._~-]+/)?[A-Za-z0-9_~][A-Za-z0-9._~-]*(@[^/]*)?$`)
	// moduleOption is -m, alone, behind other letters, or with the module.
	moduleOption = regexp.MustCompile(`^-[bBdEhiIOPqsSuvVx]*m(.*)$`)
	moduleName   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$`)
)

// lookUp gives found where programs look by themselves: for packages in node_modules,
// and for modules of Python.
func (g *gatherer) lookUp(args []string, found func(file string)) {
	installed, python := false, false
	for _, word := range g.words {
		installed = installed || slices.Contains(packageRunners, program(word))
		python = python || program(word) == "python" || program(word) == "pypy"
	}
	for _, word := range g.words {
		if installed && packageName.MatchString(word) {
			g.lookUpPackage(word, found)
		}
	}
	words := strings.FieldsFunc(strings.Join(args, " "), parts)
	words = words[:min(len(words), maxWords)]
	for i, word := range words {
		m := moduleOption.FindStringSubmatch(word)
		if m == nil || !python {
			continue
		}
		module := m[1]
		if module == "" && i+1 < len(words) {
			module = words[i+1]
		}
		if moduleName.MatchString(module) {
			g.lookUpModule(module, found)
		}
	}
}

// lookUpPackage looks for a package, or a program of one, in node_modules.
func (g *gatherer) lookUpPackage(name string, found func(file string)) {
	name = unversioned(name)
	for _, dir := range append(g.upwards(), g.named...) {
		modules := filepath.Join(dir, "node_modules")
		found(filepath.Join(modules, ".bin", filepath.Base(name)))
		found(filepath.Join(modules, name, "package.json"))
	}
}

// unversioned is the name of a package without the version that was asked for.
func unversioned(name string) string {
	if at := strings.LastIndexByte(name, '@'); at > 0 {
		return name[:at]
	}
	return name
}

// lookUpModule looks for the files that python -m runs.
func (g *gatherer) lookUpModule(module string, found func(file string)) {
	for _, base := range g.bases {
		at := base
		for part := range strings.SplitSeq(module, ".") {
			at = filepath.Join(at, part)
			found(filepath.Join(at, "__init__.py"))
		}
		found(at + ".py")
		found(filepath.Join(at, "__main__.py"))
	}
}

// holds reports whether a file lies in the workspace.
func (g *gatherer) holds(file string) bool {
	rel, err := filepath.Rel(g.root, file)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// name is what a person calls a file: counted from the workspace when it lies there.
func (g *gatherer) name(file string) string {
	if rel, err := filepath.Rel(g.root, file); err == nil && g.holds(file) {
		return rel
	}
	return file
}

func (g *gatherer) absolute(word string) string {
	if filepath.IsAbs(word) {
		return filepath.Clean(word)
	}
	return filepath.Join(g.dir, word)
}

// pin takes in the digest of a file, if there is one and it lies in the workspace.
// Relative says that it counted from where the server runs, which is enough.
func (g *gatherer) pin(file string, relative bool) {
	if g.err != nil {
		return
	}
	file = filepath.Clean(file)
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		return // it names no file
	}
	name := g.name(file)
	if _, known := g.files[name]; known || !relative && !g.holds(file) && !g.holds(real) {
		return
	}
	sum, err := g.digest(real)
	switch {
	case err != nil:
		g.err = err
	case sum == "":
	case len(g.files) == maxFiles:
		g.err = fmt.Errorf("it names more than %d files of the workspace, so that they cannot be pinned", maxFiles)
	default:
		if real != file {
			sum = real + " " + sum
		}
		g.files[name] = sum
		g.pinInterpreter(real)
	}
}

// pinInterpreter pins what the first line of a script names as its interpreter.
func (g *gatherer) pinInterpreter(file string) {
	for _, word := range interpreter(file) {
		if g.pin(g.absolute(word), !filepath.IsAbs(word)); kindOf(word) != nil {
			g.meet(kindOf(word))
		}
	}
}

// interpreter is the command line in the first line of a script, empty for others.
func interpreter(file string) []string {
	f, err := os.OpenFile(file, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	head := make([]byte, 256)
	n, _ := io.ReadFull(f, head) // a shorter one is whole
	line, found := strings.CutPrefix(string(head[:n]), "#!")
	if !found {
		return nil
	}
	line, _, _ = strings.Cut(line, "\n")
	return strings.Fields(line)
}

// digest is that of a regular file, a word for what is none, and "" for a directory.
func (g *gatherer) digest(file string) (string, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", err
	case info.IsDir():
		return "", nil
	case !info.Mode().IsRegular():
		return info.Mode().Type().String(), nil
	case info.Size() > maxDigest || g.size+info.Size() > maxPinned:
		return "", fmt.Errorf("read %q: it is too large to be pinned; keep large data outside the workspace", file)
	}
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(f, maxDigest+1))
	if g.size += n; err != nil || n > maxDigest {
		return "", errors.Join(err, fmt.Errorf("read %q: it is too large to be pinned", file))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
