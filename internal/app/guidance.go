package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"zcoder/internal/agent"
	"zcoder/internal/ownfile"
	"zcoder/internal/workspace"
	"zcoder/profiles"
	"zcoder/skills"
	"zcoder/tools"
)

// guidance is what files tell the model: the instruction chain and the skills. It
// grants nothing.
type guidance struct {
	sources profiles.Sources
	library *skills.Library
	conv    atomic.Pointer[conversation] // the current one

	mu     sync.Mutex
	chain  profiles.Chain
	small  profiles.Chain // for small windows
	seen   map[string]string
	nested []profiles.Guide   // given to the model since the start
	passed []profiles.Ignored // nested files that are not used and were told
}

// Bounds of guidance.
const (
	maxGuide     = 1 << 20 // bytes of one file; a larger one is not read
	smallGuides  = 4096    // bytes of the chain for a small window
	smallSkills  = 2048    // bytes of the list of skills for a small window
	memoryOfSums = "guidance.json"
)

// openGuidance finds the project's root and reads what it and the user say. It looks
// at fixed names only and starts nothing.
func (w *workbench) openGuidance() error {
	g := &w.guide
	project, err := w.openProject()
	if err != nil {
		return err
	}
	g.sources = profiles.Sources{
		Root: project.Root(), Workspace: w.ws.Root(),
		Fallbacks: w.v.List("project-doc-fallbacks"), MaxBytes: w.v.Int("project-doc-max-bytes"),
		ReadGlobal: readOwn, ReadProject: readInside(project),
	}
	if w.scratch == "" {
		g.sources.Global = w.home
	}
	g.library = skills.Open(w.skillOptions())
	g.read()
	return nil
}

// openProject opens the tree that project files must lie in.
func (w *workbench) openProject() (*workspace.Workspace, error) {
	root := profiles.Root(w.ws.Root(), w.isProject)
	if root == w.ws.Root() {
		return w.ws, nil
	}
	project, err := workspace.Open(root, workspace.Options{SettingsDir: w.home, UserHome: w.p.UserHome})
	if err != nil {
		return w.ws, nil // it cannot be entered, so nothing of it is read
	}
	w.onClose(project.Close)
	return project, nil
}

// isProject reports whether git has its root in dir. Above the workspace, a .git of a
// stranger does not count: anybody may put one into /tmp.
func (w *workbench) isProject(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, ".git"))
	if err != nil || !info.IsDir() && !info.Mode().IsRegular() {
		return false
	}
	if dir == w.ws.Root() {
		return true
	}
	owner := ownerOf(info)
	mine, err := os.Stat(w.ws.Root())
	return err == nil && (owner == os.Geteuid() || owner == 0 || owner == ownerOf(mine))
}

func ownerOf(info fs.FileInfo) int {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid)
	}
	return -1
}

// readOwn reads a file of the user's own settings directory; it may be a link.
func readOwn(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file")
	case info.Size() > maxGuide:
		return nil, fmt.Errorf("it has %d bytes, at most %d are read", info.Size(), maxGuide)
	}
	return io.ReadAll(io.LimitReader(f, maxGuide))
}

// readInside reads files of a project, in the words of the workspace's boundary.
func readInside(project *workspace.Workspace) profiles.Reader {
	say := func(err error) error {
		return errors.New(strings.ReplaceAll(err.Error(), "the workspace", "the project"))
	}
	return func(path string) ([]byte, error) {
		p, err := project.Resolve(path)
		switch {
		case err != nil:
			return nil, say(err)
		case !p.Exists():
			return nil, fs.ErrNotExist
		case workspace.Protected(p.Rel()):
			return nil, errors.New("it leads to git's own files")
		case len(p.ReadReasons()) > 0:
			return nil, say(errors.New(strings.Join(p.ReadReasons(), "; ")))
		}
		content, _, err := project.Read(p, maxGuide)
		if err != nil {
			return nil, say(err)
		}
		return content, nil
	}
}

// skillOptions are the three fixed places, of which the last one wins.
func (w *workbench) skillOptions() skills.Options {
	o := skills.Options{
		MaxSkills: w.v.Int("max-skills"), MaxActive: w.v.Int("max-active-skills"), MaxBytes: w.v.Int("skill-max-bytes"),
		ActiveBytes: w.v.Int("active-skills-max-bytes"), MaxOutput: w.v.Int("max-tool-output"),
	}
	if w.scratch != "" || o.MaxSkills == 0 {
		return o
	}
	home := w.p.UserHome
	config := w.p.getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(config) {
		config = filepath.Join(home, ".config")
	}
	within := home
	if !strings.HasPrefix(config, strings.TrimSuffix(home, "/")+"/") {
		within = config
	}
	for _, r := range []skills.Root{
		{Dir: filepath.Join(config, "agents", "skills"), Within: within, Of: "user"},
		{Dir: filepath.Join(home, ".agents", "skills"), Within: home, Of: "user"},
		{Dir: filepath.Join(w.guide.sources.Root, ".agents", "skills"), Within: w.guide.sources.Root, Of: "project"},
	} {
		same := func(have skills.Root) bool { return sameDir(have.Dir, r.Dir) }
		if filepath.IsAbs(r.Dir) && !slices.ContainsFunc(o.Roots, same) {
			o.Roots = append(o.Roots, r)
		}
	}
	return o
}

// sameDir reports whether two paths lead to one directory, as when the project is the
// home.
func sameDir(a, b string) bool {
	if a == b {
		return true
	}
	ai, aerr := os.Stat(a)
	bi, berr := os.Stat(b)
	return aerr == nil && berr == nil && os.SameFile(ai, bi)
}

// read reads the chain again and reports whether it says something else than before.
func (g *guidance) read() (changed bool) {
	chain := profiles.ReadChain(g.sources)
	few := g.sources
	few.MaxBytes = min(few.MaxBytes, smallGuides)
	small := profiles.ReadChain(few)
	g.mu.Lock()
	defer g.mu.Unlock()
	changed = chain.Text() != g.chain.Text()
	g.chain, g.small = chain, small
	return changed
}

// now returns the chain as it was read last.
func (g *guidance) now() profiles.Chain {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.chain
}

// active are the skills of the current conversation.
func (g *guidance) active() []skills.Active {
	c := g.conv.Load()
	if c == nil {
		return nil
	}
	return skills.ActiveIn(c.History())
}

// assemble makes the tools and the prompts, at the start and when the guidance
// changed.
func (w *workbench) assemble() error {
	most := w.v.Int("skill-catalog-max-bytes")
	reg, err := w.register(w.builtin, most)
	if err != nil {
		return err
	}
	system := w.promptWith(w.guide.now(), most)
	w.setMu.Lock()
	w.tools, w.system = reg, system
	w.setMu.Unlock()
	if w.brain == nil {
		return nil
	}
	return w.assembleLite()
}

// assembleLite makes the small set of tools for small windows, and the prompt that
// fits it.
func (w *workbench) assembleLite() error {
	var few []tools.Tool
	for _, t := range w.builtin {
		if name := t.Spec().Name; name != "read_file_range" && name != "apply_patch" {
			few = append(few, t)
		}
	}
	most := min(smallSkills, w.v.Int("skill-catalog-max-bytes"))
	lite, err := w.register(few, most)
	if err != nil {
		return err
	}
	w.guide.mu.Lock()
	chain := w.guide.small
	w.guide.mu.Unlock()
	system := w.promptWith(chain, most)
	w.brain.setSmall(lite, strings.NewReplacer(" or read_file_range", "", " or apply_patch", "").Replace(system))
	return nil
}

// stable is what stands before the history of every request.
func (w *workbench) stable() (string, *tools.Registry) {
	w.setMu.Lock()
	defer w.setMu.Unlock()
	return w.system, w.tools
}

// register adds the tools of skills, finish and those of MCP servers. The order is the
// order in the prompt and never changes.
func (w *workbench) register(builtin []tools.Tool, catalogueBytes int) (*tools.Registry, error) {
	return tools.NewRegistry(slices.Concat(builtin, w.guide.library.Tools(catalogueBytes, w.guide.active), []tools.Tool{agent.Finish()}, w.servers.Tools())...)
}

func (w *workbench) promptWith(chain profiles.Chain, catalogueBytes int) string {
	list, _ := w.guide.library.Catalogue(catalogueBytes)
	return profiles.Prompt(w.profile, profiles.Facts{
		Workspace: w.ws.Root(), OS: runtime.GOOS, Shell: w.shell.Note(), Instructions: chain.Text(), Skills: list,
	})
}

// refresh reads the chain again for a new conversation, and makes the prompt anew when
// it changed.
func (w *workbench) refresh() {
	if w.guide.read() {
		// The same tools were registered before, so this does not fail.
		_ = w.assemble()
	}
}

// shown is a path as a person knows it: relative to the workspace, or with ~.
func (w *workbench) shown(path string) string {
	if rest, ok := strings.CutPrefix(path, strings.TrimSuffix(w.ws.Root(), "/")+"/"); ok {
		return rest
	}
	return w.shortPath(path)
}

// noteGuidance tells at the start of a session what a person should know of the
// files: what changed since the last one, what is hidden in them, what is ignored. It
// remembers the sums.
func (w *workbench) noteGuidance() {
	if w.scratch != "" {
		return
	}
	g := &w.guide
	chain := g.now()
	sums := map[string]string{}
	for _, guide := range chain.Guides {
		sums[guide.Path] = guide.Sum
		for _, h := range guide.Hidden {
			w.notices = append(w.notices, fmt.Sprintf("warning: %s: %s", w.shown(guide.Path), h))
		}
	}
	for _, i := range chain.Ignored {
		w.notices = append(w.notices, fmt.Sprintf("note: %s is ignored: %s", w.shown(i.Path), i.Reason))
	}
	set := g.library.Set()
	for _, k := range set.Skills {
		if k.Of == "project" {
			sums[filepath.Join(k.Dir, "SKILL.md")] = k.Sum
		}
	}
	if n := len(set.Ignored); n > 0 {
		w.notices = append(w.notices, fmt.Sprintf("note: %s not used; /skills says why", plural(n, "entry of the skill directories is", "entries of the skill directories are")))
	}
	w.notices = append(w.notices, w.changedSince(sums)...)
}

// changedSince compares with the sums of the last session here, and keeps the new ones.
func (w *workbench) changedSince(sums map[string]string) []string {
	memory := w.readSums()
	before, known := memory[w.ws.Root()]
	var notices []string
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		old, was := before[name]
		switch {
		case known && !was:
			notices = append(notices, fmt.Sprintf("note: %s is new since the last session (sha256 %.12s)", w.shown(name), sums[name]))
		case was && old != sums[name]:
			notices = append(notices, fmt.Sprintf("note: %s changed since the last session (sha256 %.12s)", w.shown(name), sums[name]))
		}
	}
	next := maps.Clone(sums)
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if _, is := sums[name]; is {
			continue
		}
		if _, err := os.Lstat(name); err == nil {
			next[name] = before[name] // a nested file, or one that is ignored now
			continue
		}
		notices = append(notices, fmt.Sprintf("note: %s is gone since the last session", w.shown(name)))
	}
	w.guide.mu.Lock()
	w.guide.seen = before
	w.guide.mu.Unlock()
	if !known || !maps.Equal(before, next) {
		memory[w.ws.Root()] = next
		w.writeSums(memory)
	}
	return notices
}

// sums are the SHA-256 of files by their path, by workspace.
type sums map[string]map[string]string

// maxSums is from how many workspaces on those that are gone are forgotten.
const maxSums = 500

// readSums reads what earlier sessions saw. A file that cannot be read is empty.
func (w *workbench) readSums() sums {
	memory := sums{}
	data, err := os.ReadFile(filepath.Join(w.home, memoryOfSums))
	if err != nil || json.Unmarshal(data, &memory) != nil || memory == nil {
		return sums{}
	}
	return memory
}

// writeSums keeps the sums for the next session. Failing to costs only the notice.
func (w *workbench) writeSums(memory sums) {
	if len(memory) > maxSums {
		maps.DeleteFunc(memory, func(root string, _ map[string]string) bool {
			_, err := os.Lstat(root)
			return err != nil
		})
	}
	if data, err := json.MarshalIndent(memory, "", "  "); err == nil {
		_ = ownfile.Replace(filepath.Join(w.home, memoryOfSums), append(data, '\n'), 0o600)
	}
}
