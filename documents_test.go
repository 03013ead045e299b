package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// needs are the reasons why a block of commands in a document runs in no script. Such a
// block says so: ```sh needs=ollama.
var needs = map[string]string{
	"ollama":  "a model server with real models; make test-real has one",
	"clone":   "a clone of its own, and minutes of compiling",
	"release": "the files of a release; CI makes and compares them",
	"ssh":     "another machine; TestScriptsOverSSH has an sshd on this one",
	"ci":      "CI runs it, see .ci/run",
}

// twoCommands begin README.md. The first is a script of its own, the second is this.
const twoCommands = "go run . --demo\nmake test\n"

// TestEveryCommandOfTheDocumentsRuns: a block of commands runs in a script, by the verb
// commands, or says what it needs; those are listed.
func TestEveryCommandOfTheDocumentsRuns(t *testing.T) {
	ran := map[string]bool{}
	scripts, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, script := range scripts {
		for _, m := range regexp.MustCompile(`(?m)^commands (\S+) `).FindAllStringSubmatch(read(t, script), -1) {
			ran[filepath.Join("docs", m[1])] = true
		}
	}
	for _, file := range documents(t) {
		for language, blocks := range fences(read(t, file)) {
			blocks = slices.DeleteFunc(blocks, func(b string) bool { return b == twoCommands })
			_, need, marked := strings.Cut(language, " needs=")
			switch {
			case !strings.HasPrefix(language, "sh") || len(blocks) == 0:
			case !marked && !ran[file]:
				t.Errorf("no script runs the commands of %s", file)
			case marked && needs[need] == "":
				t.Errorf("%s: a block needs %q, which is no known reason", file, need)
			case marked:
				t.Logf("not run: %s needs %s: %s", file, needs[need], strings.Join(blocks, "---\n"))
			}
		}
	}
}

// TestMakefileHasWhatTheDocumentsName: also what runs in no script is there.
func TestMakefileHasWhatTheDocumentsName(t *testing.T) {
	makefile := read(t, "Makefile")
	for _, file := range documents(t) {
		for _, m := range regexp.MustCompile("(?m)(?:^|`)make ([a-z-]+)").FindAllStringSubmatch(read(t, file), -1) {
			if !strings.Contains(makefile, "\n"+m[1]+":") {
				t.Errorf("%s: the Makefile has no target %q", file, m[1])
			}
		}
	}
}

// TestArchitectureNamesWhatThereIs: the walk through the code leads to code.
func TestArchitectureNamesWhatThereIs(t *testing.T) {
	text := read(t, "docs/architecture.md")
	dirs := map[string]string{}
	for pkg := range imports(t) {
		dirs[pkg[strings.LastIndexByte(pkg, '/')+1:]] = strings.TrimPrefix(pkg, "zcoder/")
	}
	for _, m := range regexp.MustCompile("`([a-z]+)\\.([A-Za-z]\\w*)(?:\\.(\\w+))?`").FindAllStringSubmatch(text, -1) {
		if m[2] == "go" {
			continue // a file
		}
		dir, name := dirs[m[1]], m[2]
		if m[3] != "" {
			name = m[3]
		}
		if dir == "" || !declares(t, dir, name) {
			t.Errorf("docs/architecture.md: there is no %s", m[0])
		}
	}
	for _, m := range regexp.MustCompile("`((?:internal|tools|docs|repl|remote|mcp|relay|skills|profiles)/[\\w./]+)`").FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat(m[1]); err != nil {
			t.Errorf("docs/architecture.md: %v", err)
		}
	}
}

// declares reports whether the package in dir declares a function, method, type or member
// of that name.
func declares(t *testing.T, dir, name string) bool {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	declaration := regexp.MustCompile(`(?m)^(?:func (?:\([^)]*\) )?|type |\t)` + name + `\b`)
	return slices.ContainsFunc(files, func(file string) bool { return declaration.MatchString(read(t, file)) })
}

func documents(t *testing.T) []string {
	files, err := filepath.Glob("docs/*.md")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	return append(files, "README.md", "CONTRIBUTING.md")
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// cmdSession writes the N-th session of a page, a block of the language console, as a
// script for term, so that it is one that the program really shows. Lines can be left out.
//
//	$ COMMAND         runs it
//	› TEXT            types TEXT at the prompt, whatever stands before the ›
//	✓ …               answers y in the dialog
//	✗ … reason: TEXT  answers n, and gives the reason
//	QUESTION [y/N] n  answers n
//	TEXT …            waits for TEXT
func cmdSession(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: session DOC N FILE")
	}
	text, err := os.ReadFile(filepath.Join("docs", args[0]))
	ts.Check(err)
	var n int
	_, err = fmt.Sscan(args[1], &n)
	ts.Check(err)
	sessions := fences(string(text))["console"]
	if n < 1 || n > len(sessions) {
		ts.Fatalf("docs/%s has %d sessions", args[0], len(sessions))
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(sessionSteps(sessions[n-1])), 0o600))
}

func sessionSteps(session string) string {
	var b strings.Builder
	for line := range strings.Lines(session) {
		line = strings.TrimSpace(line)
		_, typed, prompt := strings.Cut(line, "› ")
		question, answer, asks := strings.Cut(line, "[y/N] ")
		switch {
		case line == "":
		case strings.HasPrefix(line, "$ "):
			b.WriteString("run " + line[2:] + "\n")
		case prompt:
			b.WriteString("wait ›\nsend " + typed + "\\r\n")
		case strings.HasPrefix(line, "✓"):
			b.WriteString("wait Allow this?\nsettle\nsend y\nwait " + line + "\n")
		case strings.HasPrefix(line, "✗"):
			shown, reason, _ := strings.Cut(line, " reason: ")
			b.WriteString("wait Allow this?\nsettle\nsend n\nwait why not\nsend " + reason + "\\r\nwait " + shown + "\nwait reason: " + reason + "\n")
		case asks:
			b.WriteString("wait " + question + "[y/N]\nsend " + answer + "\\r\n")
		default:
			b.WriteString("wait " + strings.TrimSpace(strings.TrimSuffix(line, "…")) + "\n")
		}
	}
	b.WriteString("wait ›\nsend \\x04\nexit 0\n")
	return b.String()
}
