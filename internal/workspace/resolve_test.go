package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// tree makes a workspace with links of all kinds beside an outside directory.
func tree(t testing.TB) (w *Workspace, root, outside string) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root, outside = filepath.Join(base, "ws"), filepath.Join(base, "ws-evil")
	put(t, filepath.Join(root, "main.go"), "package main\n")
	put(t, filepath.Join(root, "sub/deep/file.txt"), "deep\n")
	put(t, filepath.Join(root, "ends in blank "), "x")
	put(t, filepath.Join(root, "~odd"), "x")
	put(t, filepath.Join(outside, "secret"), "outside\n")
	links := map[string]string{
		"rel":        "sub/deep/file.txt",
		"abs":        filepath.Join(root, "sub/deep/file.txt"),
		"absdir":     filepath.Join(root, "sub"),
		"sub/up":     "../main.go",
		"chain":      "rel",
		"out":        outside,
		"outrel":     "../ws-evil/secret",
		"outabs":     filepath.Join(outside, "secret"),
		"dangling":   "nowhere.txt",
		"danglout":   filepath.Join(outside, "new"),
		"loop":       "loop",
		"loop1":      "loop2",
		"loop2":      "loop1",
		"etc":        "/etc/passwd",
		"backin":     "../ws/main.go",
		"throughout": "out/../ws/main.go",
		"viaproc":    "/proc/self/cwd",
	}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	if w, err = Open(root, Options{UserHome: base}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w, root, outside
}

func TestResolveInside(t *testing.T) {
	w, root, _ := tree(t)
	for text, want := range map[string]string{
		".":                                 ".",
		"./":                                ".",
		root:                                ".",
		root + "/":                          ".",
		"main.go":                           "main.go",
		"./main.go":                         "main.go",
		".//main.go":                        "main.go",
		"sub//deep///file.txt":              "sub/deep/file.txt",
		"./sub/./deep/file.txt":             "sub/deep/file.txt",
		"sub/":                              "sub",
		"sub/../main.go":                    "main.go",
		"nothere/../main.go":                "main.go",
		root + "/main.go":                   "main.go",
		root + "//sub/../main.go":           "main.go",
		"/" + root + "/./main.go":           "main.go",
		"rel":                               "sub/deep/file.txt",
		"abs":                               "sub/deep/file.txt",
		"chain":                             "sub/deep/file.txt",
		"absdir/deep/file.txt":              "sub/deep/file.txt",
		"absdir/../main.go":                 "main.go",
		"sub/up":                            "main.go",
		"new/dir/x":                         "new/dir/x",
		"absdir/new":                        "sub/new",
		"-rf":                               "-rf",
		"ends in blank ":                    "ends in blank ",
		"~odd":                              "~odd",
		"./~new":                            "~new",
		"x:y/z":                             "x:y/z",
		"a\nb":                              "a\nb",
		"e\u0301":                           "e\u0301",
		strings.Repeat("n", 255):            strings.Repeat("n", 255),
		"..." + "/" + "..a":                 ".../..a",
		`back\slash`:                        `back\slash`,
		filepath.Dir(root) + "/ws/main.go":  "main.go",
		filepath.Dir(root) + "//ws/main.go": "main.go",
	} {
		p, err := w.Resolve(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if p.Rel() != want || p.Abs() != filepath.Join(root, want) {
			t.Errorf("%q: got %q, %q, want %q", text, p.Rel(), p.Abs(), want)
		}
		if _, err := os.Lstat(p.Abs()); (err == nil) != p.Exists() {
			t.Errorf("%q: Exists is %v", text, p.Exists())
		}
	}
}

func TestResolveRefuses(t *testing.T) {
	w, root, outside := tree(t)
	for text, want := range map[string]string{
		"":                                     "empty",
		"  \n":                                 "empty",
		"a\x00b":                               "NUL",
		"..":                                   "outside",
		"../ws-evil/secret":                    "outside",
		"../ws/main.go":                        "outside",
		"sub/../../ws-evil/secret":             "outside",
		"nothere/../../x":                      "outside",
		root + "-evil/secret":                  "outside",
		root + "/../ws-evil/secret":            "outside",
		outside + "/secret":                    "outside",
		"/etc/passwd":                          "outside",
		"/":                                    "outside",
		"//":                                   "outside",
		"/proc/self/cwd/../x":                  "outside",
		"/proc/self/root/etc/passwd":           "outside",
		"/dev/fd/3":                            "outside",
		"/proc/1/environ":                      "outside",
		"out":                                  "outside the workspace",
		"out/secret":                           "outside the workspace",
		"out/new":                              "outside the workspace",
		"outrel":                               "outside",
		"outabs":                               "outside the workspace",
		"etc":                                  "outside the workspace",
		"throughout":                           "outside the workspace",
		"backin":                               "outside",
		"viaproc/main.go":                      "outside the workspace",
		"dangling":                             `link to "nowhere.txt", which does not exist`,
		"danglout":                             "outside the workspace",
		"loop":                                 "more than 40 links",
		"loop1/x":                              "more than 40 links",
		"main.go/x":                            "not a directory",
		"main.go/":                             "leave the slash out",
		"main.go/..":                           "not a directory",
		"new/":                                 "leave the slash out",
		"main.go ":                             `write "main.go"`,
		" main.go":                             `write "main.go"`,
		"main.go\n":                            `write "main.go"`,
		"sub /new":                             `write "sub"`,
		"new/a /b":                             `write "a"`,
		"~":                                    "not expanded",
		"~/x":                                  "outside the workspace",
		"~/ws/main.go":                         `write "main.go"`,
		"~root/x":                              `write "./~root/x"`,
		"~new":                                 `write "./~new"`,
		"file:///etc/passwd":                   "URL",
		"FILE:/etc/passwd":                     "URL",
		"file://" + root + "/main.go":          `write "main.go"`,
		"https://example.org/x":                "URL",
		strings.Repeat("n", 256):               "255",
		strings.Repeat("n", 5000):              "4096",
		strings.Repeat("n/", 2048) + "toolong": "4096",
	} {
		p, err := w.Resolve(text)
		if err == nil {
			t.Errorf("%.40q resolves to %q", text, p.Rel())
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %q does not say %q", text, err, want)
		}
	}
}

// TestRootAsLink enters a workspace through a link; both names are inside.
func TestRootAsLink(t *testing.T) {
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(base, "real/a"), "a")
	link := filepath.Join(base, "link")
	if err := os.Symlink("real", link); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(link, "a"), filepath.Join(base, "real/b")); err != nil {
		t.Fatal(err)
	}
	w, err := Open(link, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if want := filepath.Join(base, "real"); w.Root() != want {
		t.Errorf("root is %q, want %q", w.Root(), want)
	}
	for _, text := range []string{"a", "b", filepath.Join(link, "a"), filepath.Join(base, "real/a")} {
		if p := resolve(t, w, text); p.Rel() != "a" {
			t.Errorf("%q resolves to %q", text, p.Rel())
		}
	}
}

func TestOpenNeedsDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	put(t, file, "x")
	for _, root := range []string{file, filepath.Join(t.TempDir(), "absent")} {
		if w, err := Open(root, Options{}); err == nil {
			w.Close()
			t.Errorf("%q opens as a workspace", root)
		}
	}
}

// TestSpecialFiles reads what would block or never end.
func TestSpecialFiles(t *testing.T) {
	w, root := open(t, Options{})
	if err := syscall.Mkfifo(filepath.Join(root, "fifo"), 0o644); err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	if err := syscall.Bind(fd, &syscall.SockaddrUnix{Name: filepath.Join(root, "socket")}); err != nil {
		t.Fatal(err)
	}
	names := []string{"fifo", "socket", "."}
	if err := syscall.Mknod(filepath.Join(root, "zero"), syscall.S_IFCHR|0o644, 1<<8|5); err == nil {
		names = append(names, "zero")
	} else {
		t.Logf("no device: %v", err)
	}
	for _, name := range names {
		p := resolve(t, w, name)
		if f, err := w.Open(p); err == nil {
			f.Close()
			t.Errorf("%s opens", name)
		}
		if _, _, err := w.Read(p, 10); err == nil {
			t.Errorf("%s is read", name)
		}
		if _, err := w.StampOf(p); err == nil {
			t.Errorf("%s has a stamp", name)
		}
		if _, err := p.WriteReasons(); err == nil {
			t.Errorf("%s is writable", name)
		}
		if err := w.Apply(Change{Path: p, Content: []byte("x")}); err == nil {
			t.Errorf("%s is replaced", name)
		}
	}
}

// TestKernelFiles opens a workspace that holds /proc.
func TestKernelFiles(t *testing.T) {
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("no /proc here")
	}
	w, err := Open("/proc", Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, name := range []string{"self/environ", "kmsg", "version", "/proc/1/environ"} {
		p, err := w.Resolve(name)
		if err != nil {
			continue
		}
		if f, err := w.Open(p); err == nil {
			f.Close()
			t.Errorf("%s opens", name)
		}
	}
}

func FuzzResolve(f *testing.F) {
	for _, seed := range []string{".", "a", "../x", "rel", "out/secret", "absdir/../x", "~/x", "file:///x", "a//b/", "dangling", "loop", "\x00", ".git/x"} {
		f.Add(seed)
	}
	w, root, _ := tree(f)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := w.Resolve(text)
		if err != nil {
			return
		}
		if p.Rel() != "." && !filepath.IsLocal(p.Rel()) {
			t.Fatalf("%q resolves to %q", text, p.Rel())
		}
		if p.Abs() != root && !strings.HasPrefix(p.Abs(), root+"/") {
			t.Fatalf("%q resolves to %q", text, p.Abs())
		}
		for at := p.Abs(); at != root; at = filepath.Dir(at) {
			if info, err := os.Lstat(at); err == nil && info.Mode()&os.ModeSymlink != 0 {
				t.Fatalf("%q resolves to %q through the link %q", text, p.Abs(), at)
			}
		}
		again, err := w.Resolve(p.Abs())
		if err != nil || again.Rel() != p.Rel() {
			t.Fatalf("%q resolves to %q, that to %q (%v)", text, p.Rel(), again.Rel(), err)
		}
	})
}

func BenchmarkResolve(b *testing.B) {
	w, root := open(b, Options{SettingsDir: "/nonexistent/settings"})
	put(b, filepath.Join(root, "a/b/c/d/file.go"), "x")
	for b.Loop() {
		if _, err := w.Resolve("a/b/c/d/file.go"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	w, root := open(b, Options{})
	put(b, filepath.Join(root, "a/b/c/d/file.go"), "x")
	p := resolve(b, w, "a/b/c/d/file.go")
	for b.Loop() {
		f, err := w.Open(p)
		if err != nil {
			b.Fatal(err)
		}
		f.Close()
	}
}
