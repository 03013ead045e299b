package shellread

import (
	"strings"
	"testing"
)

// FuzzRead holds: reading never panics, a command that is not blank is never without
// a finding, lists stay bounded, and everything that is reported can be shown.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"rm -rf /", "env -S 'sh -c \"rm x\"'", "cat <<EOF | sh\n$(x)\nEOF", ":(){ :|:& };:", "echo *(e:'id':)", "${(e)x}", "=rm x", "x='a[$(c)]'; echo $((x))",
		"for f (a b) rm $f", "repeat 3; do x; done", "a=(1 2); \"${a[@]}\" ${a[1,2]} $a:h", "find . \\( -name a -o -name b \\) -exec sh -c '$0' {} \\;", "X=$X$X;X=$X$X;$X",
		"sudo -u x -- A=1 rm", "docker run -v a:b --mount type=bind,src=/,dst=/h i sh -c x", "sed -n 's/a/b/w f;e x' y", "awk 'BEGIN{system(\"x\")}'", "tar --checkpoint-action=exec=x",
		"[[ -v a[$(x)] && $y -eq z ]]", "echo {1..9}{a..z} {a,{b,c}}", "f() { f|f& }; f", "alias f=f; f\nf", "case x in (a|b) c ;; esac", "echo $'\\x41\\u263a\\777' ${x:1:-2} ${x/a/b} ${x#*a} ${!x} ${x^^}",
		"ssh -oProxyCommand=x h 'y z'", "git -c alias.x=!y x --upload-pack=z", "printf '%s%b%c%%' a '\\n' c | tr a-z n-za-m | xargs -I{} sh -c {}", "echo \"a\\\nb\" \\\n c \r\n", "{ a } always { b }", "!!", "<&- >&2 3<>x <<<y", "trap 'x' EXIT; set -- a; shift; $1",
	} {
		f.Add(seed, uint8(0))
		f.Add(seed, uint8(1))
		f.Add(seed, uint8(2))
	}
	f.Fuzz(func(t *testing.T, command string, dialect uint8) {
		o := testOptions(Dialect(dialect % 3))
		r := newReader(o)
		r.read(command)
		if strings.TrimSpace(command) != "" && len(r.out.Commands) == 0 && len(r.out.Opaque) == 0 {
			t.Errorf("nothing is said of %q", command)
		}
		if r.steps > r.o.MaxSteps+1 {
			t.Errorf("%d steps", r.steps)
		}
		for _, c := range r.out.Commands {
			if len(c.Words) == 0 {
				t.Errorf("a command without words in %q", command)
			}
		}
		for _, o := range r.out.Opaque {
			if o.Why == "" || o.Text == "" {
				t.Errorf("an opaque part without text or reason: %q", command)
			}
		}
		r.out.Lines()
	})
}
