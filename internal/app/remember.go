package app

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"zcoder/internal/config"
	"zcoder/internal/ownfile"
	"zcoder/internal/termtext"
	"zcoder/internal/workspace"
	"zcoder/repl"
)

// fileNameFor makes a file name of a workspace's path that is readable and unique.
func fileNameFor(root string) string {
	sum := sha256.Sum256([]byte(root))
	base := strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r == '.' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, filepath.Base(root))
	return base + "-" + hex.EncodeToString(sum[:6])
}

// The files that remember the model of each workspace and the window of each model.
func modelMemory(home string) string  { return filepath.Join(home, "models.json") }
func windowMemory(home string) string { return filepath.Join(home, "windows.json") }

// rememberedModel is the model that was chosen in this workspace last, or "".
func (w *workbench) rememberedModel() string { return readMemory(modelMemory(w.home))[w.ws.Root()] }

// rememberModel keeps the choice for the next start here. Failing to costs only that.
func (w *workbench) rememberModel(name string) {
	if w.v.Bool("demo") {
		return
	}
	memory := readMemory(modelMemory(w.home))
	memory[w.ws.Root()] = name
	if data, err := json.MarshalIndent(memory, "", "  "); err == nil {
		_ = ownfile.Replace(modelMemory(w.home), append(data, '\n'), 0o600)
	}
}

// readMemory reads a file of remembered choices; one that cannot be read is empty.
func readMemory(path string) map[string]string {
	memory := map[string]string{}
	data, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(data, &memory) != nil {
		return map[string]string{}
	}
	return memory
}

// maxCompletions bounds the names offered for a path.
const maxCompletions = 200

// completePath completes the path of a mention, within the workspace.
func (w *workbench) completePath(prefix string) []string {
	dir, base := "", prefix
	if i := strings.LastIndexByte(prefix, '/'); i >= 0 {
		dir, base = prefix[:i+1], prefix[i+1:]
	}
	at := dir
	if at == "" {
		at = "."
	}
	path, err := w.ws.Resolve(at)
	if err != nil {
		return nil
	}
	entries, err := w.ws.ReadDir(path)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, base) || strings.HasPrefix(name, ".") && !strings.HasPrefix(base, ".") || workspace.Protected(name) || termtext.Line(name) != name {
			continue
		}
		if e.IsDir() {
			name += "/"
		}
		if names = append(names, dir+name); len(names) == maxCompletions {
			break
		}
	}
	sort.Strings(names)
	return names
}

// chooseAtStart asks on the plain terminal, before the REPL has it.
func (d *desk) chooseAtStart(t *repl.Terminal) func(items []string) (int, bool) {
	return func(items []string) (int, bool) {
		if len(items) == 1 {
			return 0, true
		}
		fmt.Fprintf(t.Out, "The server does not have the model %s. It has these, which can call tools:\n", termtext.Line(d.w.model()))
		for i, item := range items {
			fmt.Fprintf(t.Out, "  %d  %s\n", i+1, item)
		}
		fmt.Fprintf(t.Out, "Which one? [1-%d, Enter for none] ", len(items))
		line, err := readAnswer(t.In)
		if err != nil {
			return 0, false
		}
		n, err := strconv.Atoi(strings.TrimSpace(line))
		return n - 1, err == nil && n >= 1 && n <= len(items)
	}
}

// canonical is the workspace's path as sessions store it.
func canonical(p Process, v *config.Values) string {
	root := v.String("workspace")
	if root == "" {
		root = p.Dir
	}
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real
	}
	if abs, err := filepath.Abs(root); err == nil {
		root = abs
	}
	return root
}
