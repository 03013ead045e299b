package shellread

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// realRuns runs a command in a real shell where every program that it may start is a
// stub that writes down how it was called.
func realRuns(t *testing.T, shell string, flags []string, command string) []string {
	t.Helper()
	dir := t.TempDir()
	bin, ws, log := filepath.Join(dir, "bin"), filepath.Join(dir, "ws"), filepath.Join(dir, "log")
	for _, d := range []string{bin, ws} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	stub := "#!/bin/sh\nline=${0##*/}\nfor a do line=\"$line <$a>\"; done\nprintf '%s\\n' \"$line\" >>\"$LOG\"\n"
	for _, name := range []string{"p", "q", "r"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte(stub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(shell, append(slices.Clone(flags), command)...)
	cmd.Dir = ws
	cmd.Env = []string{"PATH=" + bin + ":/usr/bin:/bin", "LOG=" + log, "HOME=/home/u", "BUILD=out"}
	_ = cmd.Run() // its status is part of what the command does
	data, err := os.ReadFile(log)
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}

// readRuns is the same as the reading sees it; ? stands for words that it does not
// know.
func readRuns(d Dialect, command string) []string {
	env := map[string]string{"HOME": "/home/u", "BUILD": "out", "PATH": "/bin"}
	r := Read(command, Options{Dialect: d, Dir: "/ws", Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }})
	var out []string
	for _, c := range r.Commands {
		name := baseName(c.Program)
		if name != "p" && name != "q" && name != "r" {
			continue
		}
		line := name
		for _, w := range c.Words[1:] {
			if !w.Known || w.Pattern != "" {
				line = name + " ?"
				break
			}
			line += " <" + w.Value + ">"
		}
		out = append(out, line)
	}
	return out
}

// TestRealShellsRunWhatIsRead compares the reading with what the shells do, for forms
// whose every part runs. The order may differ: pipes and substitutions run together.
func TestRealShellsRunWhatIsRead(t *testing.T) {
	both := []string{
		"p a; q b && r c", "p 'a b' \"c d\" e\\ f", "p | q | r", "p & wait", "{ p; q; }; (r)", "p $(q) `r`", "X=1 p $X; Y=2; q $Y", "X=p; $X a", "A=p; B=q; for c in $A $B; do \"$c\" x; done",
		"if p; then q; else r; fi", "case x in x) p;; esac", "f() { p \"$@\" $# ; }; f a 'b c'", "f() { p $1; shift; q $1; }; f a b", "eval 'p a; q'", "eval p '$BUILD'", "sh -c 'p $0 $1' a b", "bash -c 'p \"$@\"' _ a b", "env p a", "env A=1 p a", "env -u A p b", "nice p a", "timeout 5 p a", "nohup p a", "command p a", "exec p a", "(exec p a); q",
		"echo a b | xargs p", "echo a | xargs -I{} p x{}y", "printf 'p a\\nq b\\n' | sh", "sh <<'E'\np a\nE", "sh <<E\np $BUILD\nE", "cat <<E\n$(p a)\nE", "p <<< x", "p \"$(echo a b)\"", "p $(echo a b)", "p ${NO:-d} ${BUILD:+e} ${NO:+x}", "X=a/b.c; p ${X%/*} ${X##*/} ${X%.c}", "p {a,b}{c,d}", "p {1..3} x{a..c}", "p $'a\\tb' $'\\x41'", "p \"a\\\"b\" 'c\"d'", "p a#b # c", "p \\\na", "! p a", "time p a", "p >/dev/null 2>&1", ">/dev/null p a", "p a > out; sh out", "echo 'p a' > s; sh s; . ./s", "while p; do q; break; done", "until p; do :; done", "for i in a b; do p \"$i\"; done > /dev/null", "set -- a b; p \"$2\" \"$1\"", "X='a b'; p \"$X\"", "X=; p $X b", "p ~ ~/x \"~\"", "trap 'p a' EXIT; q", "x='a[$(p 1)]'; : $((x))", "p $(( 1 ))x > /dev/null; q", "a=(p q); \"${a[@]}\" r", "cd / && p $PWD", "test -v 'a[$(p 1)]'", "printf -v 'a[$(p 1)]' x", "p \"${BUILD}x\" ${BUILD}y", "true && p || q; false || r", "p a || q", "$(echo p) a", "base64 -d <<< cCBhCg== | sh", "echo 'a p' | rev | sh", "find . -maxdepth 0 -exec p a \\;", "env -S 'p a'", "p \"$@\" x $*", "f() { p a; }; g() { f; q; }; g", "{ p a; } 2>/dev/null | q", "X=p; Y='$X a'; eval $Y", "readonly X=p; $X a", "export X=a; sh -c 'p $X'", "X=a; sh -c 'p b$X'", "p <(q a) > /dev/null", "source /dev/stdin <<< 'p a'", "busybox sh -c 'p a' || p a",
	}
	zsh := []string{
		"repeat 2 p a", "X='a b'; p $X", "X='a b'; p ${=X}", "noglob p *", "() { p $1 } a", "for i (a b) p $i", "if [[ -n x ]] { p a }", "{ p a } always { q }", "foreach i (a b)\np $i\nend", "X=/a/b; p $X:t", "f() p a; f", "a=(x y); p $a[2] $a", "p **/nothing(N)", "nocorrect p a",
	}
	bash := []string{"X='a b'; p $X", "X=p; Y=X; ${!Y} a", "X=xpx; ${X:1:1} a", "a=(p q); $a r", "p ${BUILD^^} ${BUILD/u/x}", "p a |& q", "coproc p a; wait", "X=P; ${X,,} a"}
	for _, s := range []struct {
		name     string
		dialect  Dialect
		flags    []string
		commands []string
	}{
		{"zsh", Zsh, []string{"-f", "-c"}, append(slices.Clone(both), zsh...)},
		{"bash", Bash, []string{"--noprofile", "--norc", "-c"}, append(slices.Clone(both), bash...)},
	} {
		shell, err := exec.LookPath(s.name)
		if err != nil {
			t.Logf("skipped: %s is not installed", s.name)
			continue
		}
		for _, command := range s.commands {
			real, read := realRuns(t, shell, s.flags, command), readRuns(s.dialect, command)
			for _, line := range real {
				if name, _, _ := strings.Cut(line, " "); !slices.Contains(read, line) && !slices.Contains(read, name+" ?") {
					t.Errorf("%s ran %q, which is not in the reading %q of %q", s.name, line, read, command)
				}
			}
			if len(real) == 0 && !strings.Contains(command, "a[") {
				t.Logf("%s ran nothing of %q", s.name, command)
			}
		}
	}
}
