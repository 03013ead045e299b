package app

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"zcoder/internal/approval"
	"zcoder/internal/config"
	"zcoder/internal/ownfile"
	"zcoder/internal/policy"
	"zcoder/internal/secret"
	"zcoder/internal/workspace"
	"zcoder/profiles"
	"zcoder/tools/shell"
)

// openPolicy gathers the facts and the rules that verdicts are made from.
func (w *workbench) openPolicy() error {
	commands, err := policy.ParseCommandPolicy(w.v.String("command-policy"))
	if err != nil {
		return &config.UsageError{Text: err.Error()}
	}
	files := policyFiles(w.home, w.ws.Root())
	rules, err := files.load()
	if err != nil {
		return &config.UsageError{Text: err.Error(), Hints: []string{"correct the file; without it every command asks"}}
	}
	w.policy, err = policy.New(policy.Config{
		Profile: policyProfile(w.profile), Commands: commands, ReadOnly: w.readOnly.Load,
		Rules: rules, Reload: w.reloadRules(files), Facts: w.facts(), Dialect: w.shell.Dialect(),
	})
	return err
}

// reloadRules reads changed files before a verdict, and records that it did.
func (w *workbench) reloadRules(files *ruleFiles) func() (*policy.Rules, bool, error) {
	return func() (*policy.Rules, bool, error) {
		rules, changed, err := files.reload()
		detail := ""
		switch {
		case err != nil:
			detail = "kept the last good rules: " + err.Error()
		case changed:
			detail = fmt.Sprintf("%d rules", rules.Len())
		}
		if detail != "" {
			// What cannot be recorded is refused, and said, with the action itself.
			_ = w.audit.Record(approval.Record{Kind: "policy", Detail: detail, Sync: true})
		}
		return rules, changed, err
	}
}

func policyProfile(p profiles.Profile) policy.Profile {
	return policy.Profile{
		Name: p.Name, CommandsAlwaysAsk: p.CommandsAlwaysAsk, NoGrant: p.NoGrant, RefuseYes: p.RefuseYes,
		WorkersOff: p.WorkersOff, NoAllowRules: p.NoAllowRules, GuardElsewhere: p.GuardElsewhere,
	}
}

// facts is what the rules know of this machine.
func (w *workbench) facts() policy.Facts {
	homes := readHomes("/etc/passwd")
	commandEnv := environment(shell.CommandEnv(secret.ScrubEnv(w.p.Env)))
	f := policy.Facts{
		Root: w.ws.Root(), Home: w.p.UserHome, MountPoints: mountPoints("/proc/self/mounts"), SettingsDir: w.home,
		Env:           func(name string) (string, bool) { v, ok := commandEnv[name]; return v, ok },
		UserHome:      func(user string) (string, bool) { dir, ok := homes[user]; return dir, ok },
		Identity:      identity,
		IsLink:        func(path string) bool { return modeIs(os.Lstat, path, fs.ModeSymlink) },
		IsBlockDevice: isBlockDevice,
		IsRegular: func(path string) bool {
			info, err := os.Stat(path)
			return err == nil && info.Mode().IsRegular()
		},
		Secret: secretIn(w.ws.Root(), w.home),
	}
	for _, dir := range homes {
		if dir != w.p.UserHome {
			f.OtherHomes = append(f.OtherHomes, dir)
		}
	}
	return f
}

// secretIn judges a path by its name in the workspace, or by its whole name elsewhere,
// and by the same of what links lead to, which may be zcoder's own home.
func secretIn(root, home string) func(path string) string {
	byName := func(path string) string {
		if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
			path = rel
		}
		return workspace.Secret(path)
	}
	return func(path string) string {
		if why := byName(path); why != "" || !filepath.IsAbs(path) {
			return why
		}
		real, err := filepath.EvalSymlinks(path)
		if err != nil || real == path {
			return ""
		}
		if own, err := filepath.EvalSymlinks(home); err == nil {
			if rel, err := filepath.Rel(own, real); err == nil && filepath.IsLocal(rel) {
				return "it lies in zcoder's own home"
			}
		}
		return byName(real)
	}
}

func environment(env []string) map[string]string {
	m := make(map[string]string, len(env))
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		m[name] = value
	}
	return m
}

func identity(path string) (dev, ino uint64, ok bool) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, 0, false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return uint64(st.Dev), st.Ino, true
}

func isBlockDevice(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&fs.ModeDevice != 0 && info.Mode()&fs.ModeCharDevice == 0
}

func modeIs(stat func(string) (os.FileInfo, error), path string, bit fs.FileMode) bool {
	info, err := stat(path)
	return err == nil && info.Mode()&bit != 0
}

// systemHomes are home directories of the user database that belong to nobody.
var systemHomes = map[string]bool{"/": true, "/nonexistent": true, "/dev": true, "/proc": true, "": true}

// readHomes reads the home directory of each user. A system without the file has none.
func readHomes(path string) map[string]string {
	homes := map[string]string{}
	f, err := os.Open(path)
	if err != nil {
		return homes
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		fields := strings.Split(lines.Text(), ":")
		if len(fields) >= 6 && !systemHomes[fields[5]] {
			homes[fields[0]] = fields[5]
		}
	}
	return homes
}

// mountPoints reads where file systems are mounted; a system that has no such list
// gives none.
func mountPoints(path string) []string {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var points []string
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) >= 2 {
			points = append(points, unescape.Replace(fields[1]))
		}
	}
	return points
}

// ruleFiles are the two policy files. A changed one is read again before the next
// verdict.
type ruleFiles struct {
	user, workspace string

	mu    sync.Mutex
	stamp [2]fileStamp
}

type fileStamp struct {
	size int64
	time time.Time
}

func policyFiles(home, root string) *ruleFiles {
	return &ruleFiles{user: filepath.Join(home, "policy.toml"), workspace: filepath.Join(root, ".zcoder", "policy.toml")}
}

func stampOf(path string) fileStamp {
	info, err := os.Stat(path)
	if err != nil {
		return fileStamp{}
	}
	return fileStamp{info.Size(), info.ModTime()}
}

func (r *ruleFiles) stamps() [2]fileStamp {
	return [2]fileStamp{stampOf(r.user), stampOf(r.workspace)}
}

func (r *ruleFiles) load() (*policy.Rules, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stamp = r.stamps()
	user, err := parseRules(r.user, policy.UserRules)
	if err != nil {
		return nil, err
	}
	// What a link leads to is an ordinary file of the workspace, which the model may write.
	dir := filepath.Dir(r.workspace)
	if info, err := os.Lstat(dir); err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return nil, fmt.Errorf("read policy: %q is a link; make it a directory", dir)
	}
	workspace, err := parseRules(r.workspace, policy.WorkspaceRules)
	if err != nil {
		return nil, err
	}
	return policy.Merge(user, workspace), nil
}

func parseRules(path string, scope policy.Scope) (*policy.Rules, error) {
	data, err := readRules(path)
	if err != nil {
		return nil, err
	}
	return policy.ParseRules(data, path, scope)
}

// maxRules bounds a policy file, in bytes.
const maxRules = 1 << 20

// readRules reads a policy file, never through a link and never waiting: the one of
// the workspace may be hostile.
func readRules(path string) ([]byte, error) {
	data, err := ownfile.Read(path, maxRules)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read policy: %w", err)
	}
	return data, nil
}

func (r *ruleFiles) reload() (*policy.Rules, bool, error) {
	r.mu.Lock()
	same := r.stamp == r.stamps()
	r.mu.Unlock()
	if same {
		return nil, false, nil
	}
	rules, err := r.load()
	return rules, err == nil, err
}
