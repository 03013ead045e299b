package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// options say what to build.
type options struct {
	version string
	out     string
	targets []string // as linux/amd64
	limit   float64  // of a program, in MiB; 0 means none
}

// run builds everything, in the working directory.
func (o options) run() error {
	when, err := commitTime()
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "zcoder-dist-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	here := filepath.Join(temp, "here")
	if err := o.build(runtime.GOOS+"/"+runtime.GOARCH, here); err != nil {
		return err
	}
	version, extras, err := o.askProgram(here, temp)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.out, 0o777); err != nil {
		return err
	}
	sums := map[string][]byte{}
	for _, target := range o.targets {
		if err := o.release(target, version, when, temp, extras, sums); err != nil {
			return err
		}
	}
	return writeFile(filepath.Join(o.out, "SHA256SUMS"), sumsText(sums))
}

// release builds one target and writes its archive and its list of parts.
func (o options) release(target, version string, when time.Time, temp string, extras []file, sums map[string][]byte) error {
	binary := filepath.Join(temp, strings.ReplaceAll(target, "/", "-"))
	if err := o.build(target, binary); err != nil {
		return err
	}
	data, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	if err := o.check(target, data); err != nil {
		return err
	}
	name := fmt.Sprintf("zcoder-%s-%s", version, strings.ReplaceAll(target, "/", "-"))
	packed, err := archive(name, append([]file{{"zcoder", 0o755, data}}, extras...), when)
	if err != nil {
		return err
	}
	info, err := buildinfo.Read(bytes.NewReader(data))
	if err != nil {
		return err
	}
	parts, err := bill(info, version, data, when)
	if err != nil {
		return err
	}
	for file, content := range map[string][]byte{name + ".tar.gz": packed, name + ".cdx.json": parts} {
		sums[file] = content
		if err := writeFile(filepath.Join(o.out, file), content); err != nil {
			return err
		}
	}
	fmt.Printf("%-36s %5.1f MiB, packed %4.1f MiB\n", name, mib(len(data)), mib(len(packed)))
	return nil
}

func mib(bytes int) float64 { return float64(bytes) / (1 << 20) }

// check holds the program to the size that is stated for it, and on linux to be static.
func (o options) check(target string, program []byte) error {
	if o.limit > 0 && mib(len(program)) > o.limit {
		return fmt.Errorf("the program for %s has %.1f MiB, more than the %.1f that the Makefile states", target, mib(len(program)), o.limit)
	}
	if !strings.HasPrefix(target, "linux/") {
		return nil
	}
	f, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		return err
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return fmt.Errorf("the program for %s is not static", target)
		}
	}
	return nil
}

// build has the Go toolchain build the program. Flags of the user's own do not count.
func (o options) build(target, to string) error {
	system, processor, ok := strings.Cut(target, "/")
	if !ok {
		return fmt.Errorf("target %q: name it as linux/amd64", target)
	}
	flags := "-s -w -buildid="
	if o.version != "" {
		flags += " -X zcoder/internal/app.version=" + o.version
	}
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", flags, "-o", to, ".")
	cmd.Env = append(os.Environ(), "GOOS="+system, "GOARCH="+processor, "CGO_ENABLED=0", "GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build for %s: %w\n%s", target, err, out)
	}
	return nil
}

// askProgram has the program print its version and what is made from its tables, and
// adds the texts of the tree.
func (o options) askProgram(program, home string) (version string, extras []file, err error) {
	ask := func(args ...string) []byte {
		cmd := exec.Command(program, args...)
		cmd.Env = []string{"HOME=" + home, "ZCODER_HOME=" + filepath.Join(home, "settings")}
		out, runErr := cmd.Output()
		if runErr != nil && err == nil {
			err = fmt.Errorf("run zcoder %s: %w", strings.Join(args, " "), runErr)
		}
		return out
	}
	if words := strings.Fields(string(ask("--version"))); len(words) > 1 {
		version = words[1]
	}
	extras = []file{
		{"zcoder.1", 0o644, ask("help", "--man")},
		{"completions/zcoder.bash", 0o644, ask("completion", "bash")},
		{"completions/_zcoder", 0o644, ask("completion", "zsh")},
		{"completions/zcoder.fish", 0o644, ask("completion", "fish")},
	}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		data, readErr := os.ReadFile(name)
		if readErr != nil {
			return "", nil, readErr
		}
		extras = append(extras, file{name, 0o644, data})
	}
	return version, extras, err
}

// commitTime is when the commit was made, or what SOURCE_DATE_EPOCH says, which a tree
// without git needs.
func commitTime() (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		out, err := exec.Command("git", "log", "-1", "--format=%ct").Output()
		if err != nil {
			return time.Time{}, fmt.Errorf("find the time of the commit: %w; without git set SOURCE_DATE_EPOCH", err)
		}
		text = strings.TrimSpace(string(out))
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("read the time of the commit: %w", err)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// sumsText is what sha256sum -c reads.
func sumsText(files map[string][]byte) []byte {
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	var b bytes.Buffer
	for _, name := range names {
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(files[name]), name)
	}
	return b.Bytes()
}

func writeFile(path string, data []byte) error { return os.WriteFile(path, data, 0o666) }
