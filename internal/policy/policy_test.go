package policy

import (
	"context"
	"errors"
	"path"
	"strings"
	"testing"
	"time"

	"zcoder/internal/approval"
	"zcoder/internal/shellread"
)

func rules(t testing.TB, text string) *Rules {
	t.Helper()
	r, err := ParseRules([]byte(text), "policy.toml", UserRules)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func use(name string, write bool) approval.PathUse {
	rel, ok := strings.CutPrefix(name, "/home/u/ws/")
	if !ok {
		rel = ""
	}
	return approval.PathUse{Path: name, Rel: rel, Write: write}
}

func request(effect approval.Effect, tool string, paths ...approval.PathUse) approval.Request {
	return approval.Request{Tool: tool, Effect: effect, Origin: approval.OriginUser, Paths: paths}
}

func with(r approval.Request, change func(*approval.Request)) approval.Request {
	change(&r)
	return r
}

const denySecrets = "[[deny]]\npaths = [\"secrets\", \"~/.ssh\"]\n"

func TestOrder(t *testing.T) {
	secret := []string{"secret-like file"}
	readOnly := func(c *Config) { c.ReadOnly = func() bool { return true } }
	yes := func(c *Config) { c.Commands = AllowCommands }
	withRules := func(text string, more ...func(*Config)) func(*Config) {
		return func(c *Config) {
			r, err := ParseRules([]byte(text), "policy.toml", UserRules)
			if err != nil {
				panic(err)
			}
			c.Rules = r
			for _, f := range more {
				f(c)
			}
		}
	}
	from := func(o approval.Origin) func(*approval.Request) { return func(r *approval.Request) { r.Origin = o } }
	must := func(r approval.Request) approval.Request {
		return with(r, func(r *approval.Request) { r.MustAsk = secret })
	}
	read := request(approval.Read, "read_file", use("/home/u/ws/a.c", false))
	write := request(approval.WorkspaceWrite, "write_file", use("/home/u/ws/a.c", true))
	allowEcho := "[[allow]]\ncommands = [\"make\"]\n"
	for _, c := range []struct {
		name   string
		config func(*Config)
		r      approval.Request
		want   approval.Decision
		rule   string
		firm   bool
	}{
		{"read", nil, read, approval.Allow, "reading", false},
		{"write", nil, write, approval.Allow, "workspace", false},
		{"command", nil, command("ls"), approval.Ask, "default", false},
		{"unknown", nil, request(approval.Unknown, "x"), approval.Ask, "effect unknown", true},
		{"external", nil, request(approval.ExternalWrite, "mcp__a__b"), approval.Ask, "effect external-write", true},
		{"network", nil, request(approval.Network, "fetch"), approval.Ask, "effect network", true},
		{"delegate", nil, request(approval.Delegate, "delegate"), approval.Ask, "effect delegate", true},
		{"peer message", nil, request(approval.Peer, "send_agent_message"), approval.Ask, "effect peer", true},
		{"a made-up effect", nil, request(approval.Effect(99), "x"), approval.Ask, "effect effect(99)", true},
		{"read of a secret", nil, must(read), approval.Ask, "request", true},
		{"write that runs later", nil, must(write), approval.Ask, "request", true},
		{"command with a reason", yes, must(command("ls")), approval.Ask, "request", true},
		{"write outside", nil, request(approval.WorkspaceWrite, "write_file", use("/etc/x", true)), approval.Ask, "workspace", true},
		{"read that writes", nil, request(approval.Read, "read_file", use("/home/u/ws/x", true)), approval.Ask, "effect read", true},
		{"write of the rules", nil, request(approval.WorkspaceWrite, "write_file", use("/home/u/ws/.zcoder/policy.toml", true)), approval.Ask, "workspace", true},
		{"write of the rules in other letters", nil, request(approval.WorkspaceWrite, "write_file", use("/home/u/ws/.ZCoder/Policy.toml", true)), approval.Ask, "workspace", true},
		{"command that writes the rules", yes, command("echo > .zcoder/policy.toml"), approval.Ask, "workspace", true},
		{"command that writes the settings", yes, command("echo x >> ~/.config/zcoder/policy.toml"), approval.Ask, "workspace", true},
		{"command that removes the settings", yes, command("rm -rf ~/.config"), approval.Ask, "workspace", true},
		{"command beside the settings", yes, command("echo x > ~/.config/other"), approval.Allow, "--yes", false},
		{"command that removes the rules", yes, command("rm -rf .zcoder"), approval.Ask, "workspace", true},

		{"guard before --yes", yes, command("rm -rf /"), approval.Deny, "guard", false},
		{"guard before an allow rule", withRules("[[allow]]\ncommands = [\"rm\"]\n"), command("rm -rf /"), approval.Deny, "guard", false},
		{"--yes", yes, command("ls"), approval.Allow, "--yes", false},
		{"--yes runs what is opaque", yes, command("$X"), approval.Allow, "--yes", false},
		{"--yes covers a peer's turn", yes, with(command("ls"), from(approval.OriginPeer)), approval.Allow, "--yes", false},
		{"--yes covers no other effect", yes, request(approval.ExternalWrite, "x"), approval.Ask, "effect external-write", true},
		{"--deny-commands", func(c *Config) { c.Commands = DenyCommands }, command("ls"), approval.Deny, "--deny-commands", false},
		{"--deny-commands leaves files", func(c *Config) { c.Commands = DenyCommands }, write, approval.Allow, "workspace", false},
		{"--deny-commands leaves workers to the person there", func(c *Config) { c.Commands = DenyCommands }, request(approval.Delegate, "delegate"), approval.Ask, "effect delegate", true},
		{"--deny-commands and a worker from afar", func(c *Config) { c.Commands = DenyCommands }, with(request(approval.Delegate, "delegate"), from(approval.OriginRemote)), approval.Deny, "--deny-commands", false},
		{"peer", nil, with(command("ls"), from(approval.OriginPeer)), approval.Ask, "origin peer", true},
		{"peer despite an allow rule", withRules(allowEcho), with(command("make"), from(approval.OriginPeer)), approval.Ask, "origin peer", true},
		{"unknown origin", nil, with(command("ls"), from(approval.OriginUnknown)), approval.Ask, "origin unknown", true},
		{"remote", nil, with(command("ls"), from(approval.OriginRemote)), approval.Ask, "default", false},

		{"read-only reads", readOnly, read, approval.Allow, "reading", false},
		{"read-only writes", readOnly, write, approval.Deny, "read-only mode", false},
		{"read-only commands", func(c *Config) { yes(c); readOnly(c) }, command("ls"), approval.Deny, "read-only mode", false},
		{"read-only workers", readOnly, request(approval.Delegate, "delegate"), approval.Deny, "read-only mode", false},
		{"read-only messages", readOnly, request(approval.Peer, "send_agent_message"), approval.Deny, "read-only mode", false},
		{"read-only MCP", readOnly, request(approval.ExternalWrite, "mcp__a__b"), approval.Deny, "read-only mode", false},
		{"read-only unknown", readOnly, request(approval.Unknown, "x"), approval.Deny, "read-only mode", false},

		{"sysadmin command", sysadmin, command("ls"), approval.Ask, "profile sysadmin", true},
		{"sysadmin despite an allow rule", withRules(allowEcho, sysadmin), command("make"), approval.Ask, "profile sysadmin", true},
		{"sysadmin worker", sysadmin, request(approval.Delegate, "delegate"), approval.Deny, "profile sysadmin", false},
		{"sysadmin deny rule", withRules("[[deny]]\ncommands = [\"reboot\"]\n", sysadmin), command("sudo reboot"), approval.Deny, `deny rule "reboot" (policy.toml:1)`, false},
		{"sysadmin secret despite a path rule", withRules("[[allow]]\npaths = [\"a.c\"]\n", sysadmin), must(read), approval.Ask, "request", true},

		{"deny before --yes", withRules("[[deny]]\ncommands = [\"rm\"]\n", yes), command("rm x"), approval.Deny, `deny rule "rm" (policy.toml:1)`, false},
		{"deny before allow", withRules("[[allow]]\ncommands = [\"rm\"]\n[[deny]]\ncommands = [\"rm -r\"]\n"), command("rm -fr x"), approval.Deny, `deny rule "rm -r" (policy.toml:3)`, false},
		{"ask before --yes", withRules("[[ask]]\ncommands = [\"git push\"]\n", yes), command("git push"), approval.Ask, `ask rule "git push" (policy.toml:1)`, true},
		{"ask before allow", withRules("[[allow]]\ncommands = [\"git\"]\n[[ask]]\ncommands = [\"git push\"]\n"), command("git push"), approval.Ask, `ask rule "git push" (policy.toml:3)`, true},
		{"allow", withRules(allowEcho), command("make"), approval.Allow, `allow rule "make" (policy.toml:1)`, false},
		{"opaque matches deny", withRules("[[deny]]\ncommands = [\"reboot\"]\n", yes), command("$X"), approval.Deny, `deny rule "reboot" (policy.toml:1)`, false},
		{"opaque matches ask", withRules("[[ask]]\ncommands = [\"reboot\"]\n", yes), command("ls; $X"), approval.Ask, `ask rule "reboot" (policy.toml:1)`, true},
		{"opaque leaves path rules", withRules(denySecrets, yes), command("$X"), approval.Allow, "--yes", false},

		{"deny path for a read", withRules(denySecrets), request(approval.Read, "read_file", use("/home/u/ws/a/secrets/x", false)), approval.Deny, `deny rule "secrets" (policy.toml:1)`, false},
		{"deny path for a command", withRules(denySecrets, yes), command("cat secrets/x"), approval.Deny, `deny rule "secrets" (policy.toml:1)`, false},
		{"deny path for a redirection", withRules(denySecrets, yes), command("cat < secrets/x"), approval.Deny, `deny rule "secrets" (policy.toml:1)`, false},
		{"deny home path", withRules(denySecrets, yes), command("cat ~/.ssh/id"), approval.Deny, `deny rule "secrets" (policy.toml:1)`, false},
		{"deny path in other letters", withRules(denySecrets, yes), command("cat Secrets/x"), approval.Deny, `deny rule "secrets" (policy.toml:1)`, false},
		{"deny tool", withRules("[[deny]]\ntools = [\"mcp__*\"]\n"), request(approval.Read, "mcp__a__b"), approval.Deny, `deny rule "mcp__*" (policy.toml:1)`, false},
		{"deny tightens a message", withRules("[[deny]]\ntools = [\"send_agent_message\"]\n"), request(approval.Peer, "send_agent_message"), approval.Deny, `deny rule "send_agent_message" (policy.toml:1)`, false},
		{"allow never covers external", withRules("[[allow]]\ntools = [\"*\"]\n"), request(approval.ExternalWrite, "x"), approval.Ask, "effect external-write", true},
		{"ask rule for a read", withRules("[[ask]]\ntools = [\"read_file\"]\n"), read, approval.Ask, `ask rule "read_file" (policy.toml:1)`, true},
		{"path rule answers for a secret", withRules("[[allow]]\npaths = [\"a.c\"]\n"), must(read), approval.Allow, "reading", false},
		{"tool rule does not answer", withRules("[[allow]]\ntools = [\"read_file\"]\n"), must(read), approval.Ask, "request", true},
		{"path rule for one of two", withRules("[[allow]]\npaths = [\"a.c\"]\n"), must(request(approval.Read, "x", use("/home/u/ws/a.c", false), use("/home/u/ws/b", false))), approval.Ask, "request", true},
		{"path rule, other letters", withRules("[[allow]]\npaths = [\"A.c\"]\n"), must(read), approval.Ask, "request", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := testPolicy(t, c.config).Judge(c.r)
			if v.Decision != c.want || v.Rule != c.rule || v.Decision == approval.Ask && v.Firm != c.firm {
				t.Errorf("got %v by %q, firm %v: %s; want %v by %q, firm %v", v.Decision, v.Rule, v.Firm, v.Reason, c.want, c.rule, c.firm)
			}
			if v.Reason == "" {
				t.Error("no reason")
			}
		})
	}
}

func TestNoGrant(t *testing.T) {
	if v := testPolicy(t, sysadmin).Judge(command("ls")); !v.NoGrant {
		t.Error("sysadmin offers a grant")
	}
	if v := testPolicy(t, nil).Judge(command("ls")); v.NoGrant || v.Firm {
		t.Error("coding offers no grant")
	}
	if v := testPolicy(t, nil).Judge(with(request(approval.Read, "read_file"), func(r *approval.Request) { r.MustAsk = []string{"x"} })); !v.NoGrant {
		t.Error("a secret offers a grant")
	}
}

// TestShellDecidesTheDialect uses a command that only some shells split into words.
func TestShellDecidesTheDialect(t *testing.T) {
	p := testPolicy(t, nil)
	for shell, want := range map[string]bool{"/bin/zsh": false, "/usr/bin/bash": true, "/bin/sh": true} {
		r := with(command("F='-r /'; rm $F"), func(r *approval.Request) { r.Shell = []string{shell, "-c"} })
		if got := p.Judge(r).Rule == "guard"; got != want {
			t.Errorf("%s: refused %v, want %v", shell, got, want)
		}
	}
	r := with(command("rm -rf *"), func(r *approval.Request) { r.Dir = "" })
	if p.Judge(r).Rule != "guard" {
		t.Error("a request without a directory does not run in the workspace")
	}
}

func TestNew(t *testing.T) {
	if _, err := New(Config{Facts: Facts{Root: "relative"}}); err == nil {
		t.Error("a relative workspace is accepted")
	}
	cfg := Config{Facts: testFacts(), Commands: AllowCommands}
	sysadmin(&cfg)
	if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), `profile "sysadmin"`) || !strings.Contains(err.Error(), "--yes") {
		t.Errorf("sysadmin with --yes: %v", err)
	}
	for _, name := range []string{"ask", "allow", "deny"} {
		if c, err := ParseCommandPolicy(name); err != nil || c.String() != name {
			t.Errorf("%s: %v %v", name, c, err)
		}
	}
	if _, err := ParseCommandPolicy("yes"); err == nil {
		t.Error("an unknown command policy is accepted")
	}
}

func TestAllowRulesCover(t *testing.T) {
	const text = "[[allow]]\ncommands = [\"git status\", \"go test\", \"sort\", \"make\", \"ls\", \"pwd\"]\n[[allow]]\ncommands = [\"rm\", \"cp\"]\npaths = [\"build\"]\n"
	for text2, want := range map[string]bool{
		"pwd": true, "pwd; echo x": true, "echo x": false, "git status": true, "git status -s": true, "go test ./... && make": true, "make | sort": true, "cd build && make": true, "timeout 60 go test ./...": true, "time make": true, "sh -c 'make; ls'": true, "LANG=C make": true, "ls 2>/dev/null": true, "[ -f x ] && make": true, "rm build/x": true, "rm -rf build/x build/y": true, "cd build && rm x": true, "g\\it status": true,
		"git push": false, "git -c core.pager=x status": false, "git --git-dir=/tmp/e status": false, "make; rm x": false, "make & rm x": false, "make && curl x": false, "make $(curl x)": false, "make `id`": false, "./git status": false, "/tmp/git status": false, "GIT_DIR=/tmp/e git status": false, "PATH=.:$PATH; git status": false, "export GIT_DIR=x; git status": false, "git() { rm x; }; git status": false, "alias git=x; git status": false,
		"sort -o /etc/x f": false, "sort --output=x f": false, "sort --compress-program=sh f": false, "ls > x": false, "ls >> ~/.bashrc": false, "make &": false, "nohup make": false, "sudo make": false, "ssh h make": false, "docker exec c make": false, "xargs make < x": false, "find . -exec make {} +": false, "env make": false, "eval make": false, "X=make; Y=$X; $Y": true, "$X": false, "make $UNKNOWN_READ$(cat x)": false, "ls *": false, "ls a*": true, "cd / && make": false, `cd "$(cat x)" && make`: false, "ls <(curl x)": false, "make\nrm x": false, "make <<E\n$(rm x)\nE": false, "rm x": false, "rm build/../x": false, "rm build/x y": false, "cp build/x build/y": true, "cp x build/y": false, "rm $HOME/x": false, "echo x | sh": false, "git": false, "gitstatus": false, "git statusx": false, "make | tee x": false, "BASH_ENV=x sh -c make": false, "trap 'rm x' EXIT; make": false, "exec make": true, "make )": false, "for c in status push; do git $c; done": false, "for c in status status; do git $c; done": true, "[ -n x ] && X=push; git $X": false, "for PATH in ./bin; do make; done": false, "PATH=x; make": false, "ls *(e:'id':)": false, "x='*(+f)'; ls $~x": false, "ls ${(e)x}": false, "cat x | xargs -n1 git status": false, "git status; f() { :; }; f": true, "# make": false,
	} {
		p := testPolicy(t, func(c *Config) { c.Rules = rules(t, text) })
		v := p.Judge(command(text2))
		if got := v.Decision == approval.Allow; got != want {
			t.Errorf("%s: allowed %v, want %v (%s: %s)", text2, got, want, v.Rule, v.Reason)
		}
	}
}

// TestAllowRulesSpareSecrets has allow rules meet commands that read secrets or zcoder's
// own files, or that run what settings name.
func TestAllowRulesSpareSecrets(t *testing.T) {
	const text = "[[allow]]\ncommands = [\"cat\", \"grep\", \"sort\", \"cd\", \"git log\", \"git diff\", \"git show\", \"git grep\", \"git blame --textconv\", \"ls\"]\n[[allow]]\ncommands = [\"head\"]\npaths = [\".env\"]\n"
	secret := func(name string) string {
		for _, s := range []string{".env", "id_rsa", "server.key", "shadow"} {
			if path.Base(name) == s {
				return "a secret"
			}
		}
		return ""
	}
	for text2, want := range map[string]bool{
		"cat a.c": true, "cat .env.example": true, "grep -n x a.c": true, "grep -rn x src": true, "cat < a.c": true, "git log": true, "git log --oneline -p": true, "git diff --stat": true, "git show HEAD:a.c": true, "git log --exit-code": true, "git log -- --ext-diff": true, "git blame --textconv a.c": true, "head .env": true, "ls a*": true, "cat src/a*.c": true, "cat ~/.config/other/x": true, "git log --no-ext-diff": true,
		"cat .env": false, "cat ./.env": false, "cat sub/.env": false, "cat a.c .env": false, "cat ~/.ssh/id_rsa": false, "cat /etc/shadow": false, "cat < .env": false, "cat a.c && cat .env": false, "cat .en?": false, "cat .e*": false, "cat ~/.ssh/id*": false, "cat src/*.key": false, "cd sub && cat .env": false, `cd "$X" && cat .env`: false, "grep -f.env a.c": false, "grep --file=.env a.c": false, "grep -f .env a.c": false, "sort .env": false, "timeout 5 cat .env": false, "sh -c 'cat .env'": false, "cat a.c | sort .env": false, "echo \"$(<.env)\" && cat a.c": false, "git show HEAD:.env": false, "git diff a.c .env": false, "head .env && cat .env": false, "for f in .env; do cat $f; done": false, "cat .{env,x}": false,
		"cat ~/.config/zcoder/policy.toml": false, "cat /home/u/.config/zcoder/x": false, "ls ~/.config/zcoder": false, "cat ~/.config/ZCODER/x": false, "cat ../.config/zcoder/x": false, "cd ~/.config/zcoder && cat x": false, "cat < ~/.config/zcoder/x": false, "cat ~/.config/z*/x": false, "cat ~/.conf*/zcoder/x": false, "grep -r x ~/.config": false, "grep -R x ~": false,
		"git log --ext-diff": false, "git log -p --ext-d": false, "git log --textconv": false, "git diff --textc": false, "git show --textconv HEAD:a.c": false, "git log --show-signature": false, "git grep -Oless x": false, "git grep -O x": false, "git grep --open-files-in-pager=less x": false, "git log --output=f": false, "git log \\--ext-diff": false, "git log '--ext-diff'": false,
	} {
		p := testPolicy(t, func(c *Config) { c.Rules, c.Facts.Secret = rules(t, text), secret })
		v := p.Judge(command(text2))
		if got := v.Decision == approval.Allow; got != want {
			t.Errorf("%s: allowed %v, want %v (%s: %s)", text2, got, want, v.Rule, v.Reason)
		}
	}
}

func TestDenyRulesCover(t *testing.T) {
	const text = "[[deny]]\ncommands = [\"git push --force\", \"rm -r\", \"docker volume rm\", \"curl\"]\n[[deny]]\ncommands = [\"cat\"]\npaths = [\".env\"]\n"
	for text2, want := range map[string]bool{
		"git push --force": true, "git push origin --force": true, "git -C x push --force origin": true, "git --no-pager push --forc": true, "git push --force-with-lease": false, "git push": false, "git stash push --force": false,
		"rm -r x": true, "rm -fr x": true, "rm -rf x": true, "rm -f x": false, "/bin/rm -r x": true, "./rm -r x": true, `\rm -r x`: true, "sudo rm -r x": true, "find . -exec rm -r {} +": true, "ls && (true; rm -r x)": true, "xargs rm -r < x": true, "ssh h rm -r x": true, "sh -c 'rm -r x'": true, `rm "$(cat x)" y`: true, "rm $FLAGS_FROM_NOWHERE x": false,
		"docker volume rm x": true, "docker volume ls": false, "docker --context c volume rm x": true, "git $(cat x)": true,
		"true; true; curl x": true, "echo curl": false, "cat .env": true, "cat src/.env": true, "cat .envrc": false, "cat < .env": false, `cat "$(cat x)"`: true, "cat a*": true, "cat a": false, "grep x .env": false,
	} {
		p := testPolicy(t, func(c *Config) { c.Rules = rules(t, text) })
		v := p.Judge(command(text2))
		if got := v.Decision == approval.Deny; got != want {
			t.Errorf("%s: denied %v, want %v (%s: %s)", text2, got, want, v.Rule, v.Reason)
		}
	}
}

func TestRulesErrors(t *testing.T) {
	for _, c := range []struct {
		name, text string
		scope      Scope
		want       string // "" for none
	}{
		{"nothing", "", UserRules, ""},
		{"comments", "# nothing\n\n", UserRules, ""},
		{"one text", "[[deny]]\ncommands = \"rm\"\n", UserRules, ""},
		{"all keys", "[[ask]] # x\ncommands = [\n  \"rm\", # y\n  'git push',\n]\ntools = [\"run_command\"]\npaths = [\"a/**\", \"/etc\", \"~/x\"]\nreason = \"why\"\n", UserRules, ""},
		{"syntax", "[[deny]]\ncommands = [\n", UserRules, "p.toml:2"},
		{"unknown key", "[[deny]]\ncommands = [\"rm\"]\ncomand = \"x\"\n", UserRules, `p.toml:3: unknown key "comand"`},
		{"unknown table", "\n[[block]]\n", UserRules, `p.toml:2: unknown table [[block]]`},
		{"plain table", "[deny]\ncommands = [\"rm\"]\n", UserRules, `p.toml:1: [deny] is not a table here`},
		{"key outside", "commands = [\"rm\"]\n", UserRules, `p.toml:1: unknown key "commands"`},
		{"wrong type", "[[deny]]\ncommands = 3\n", UserRules, "p.toml:2: commands is a list of texts"},
		{"wrong element", "[[deny]]\ncommands = [\"a\", 3]\n", UserRules, "p.toml:2: commands is a list of texts"},
		{"wrong reason", "[[deny]]\ncommands = [\"a\"]\nreason = [\"x\"]\n", UserRules, "p.toml:3: reason is a text"},
		{"empty list", "[[deny]]\ncommands = []\n", UserRules, "p.toml:2: commands is empty"},
		{"empty text", "[[deny]]\ncommands = [\" \"]\n", UserRules, "p.toml:2: commands holds an empty text"},
		{"matches nothing", "[[deny]]\nreason = \"x\"\n\n[[ask]]\ntools = [\"x\"]\n", UserRules, "p.toml:1: the rule matches nothing"},
		{"last matches nothing", "[[ask]]\ntools = [\"x\"]\n[[deny]]\n", UserRules, "p.toml:3: the rule matches nothing"},
		{"shell signs", "[[deny]]\ncommands = [\"rm | sh\"]\n", UserRules, `p.toml:2: command "rm | sh"`},
		{"bad path", "[[deny]]\npaths = [\"a[\"]\n", UserRules, `p.toml:2: path "a["`},
		{"path upwards", "[[deny]]\npaths = [\"../x\"]\n", UserRules, `p.toml:2: path "../x"`},
		{"many stars", "[[deny]]\npaths = [\"**/a/**/a/**/a/**\"]\n", UserRules, "at most three"},
		{"twice", "[[deny]]\ncommands = [\"a\"]\ncommands = [\"b\"]\n", UserRules, "p.toml:3"},
		{"workspace allows", "[[deny]]\ncommands = [\"a\"]\n[[allow]]\ncommands = [\"b\"]\n", WorkspaceRules, "p.toml:3: the rules of a workspace may deny and ask, not allow"},
		{"workspace asks", "[[ask]]\ncommands = [\"b\"]\n[[deny]]\ntools = [\"x\"]\n", WorkspaceRules, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := ParseRules([]byte(c.text), "p.toml", c.scope)
			switch {
			case c.want == "" && err != nil:
				t.Errorf("error %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v, want %q", err, c.want)
			case c.want != "" && r != nil:
				t.Error("rules beside an error")
			}
		})
	}
}

func TestReload(t *testing.T) {
	var next *Rules
	var failure error
	changed := false
	p := testPolicy(t, func(c *Config) {
		c.Rules = rules(t, "[[deny]]\ncommands = [\"ls\"]\n")
		c.Reload = func() (*Rules, bool, error) { return next, changed, failure }
	})
	judge := func() approval.Verdict { return p.Judge(command("ls")) }
	if v := judge(); v.Decision != approval.Deny {
		t.Errorf("unchanged: %v", v)
	}
	failure = errors.New(`policy.toml:3: unknown key "x"`)
	if v := judge(); v.Decision != approval.Deny || !strings.Contains(strings.Join(v.Notes, "\n"), "last good ones stay in force: policy.toml:3") {
		t.Errorf("bad edit: %v", v)
	}
	failure, changed, next = nil, true, rules(t, "[[ask]]\ncommands = [\"ls\"]\n")
	if v := judge(); v.Decision != approval.Ask || !v.Firm || strings.Contains(strings.Join(v.Notes, "\n"), "last good") {
		t.Errorf("good edit: %v", v)
	}
	changed = false
	p.Set(nil)
	if v := judge(); v.Rule != "default" {
		t.Errorf("no rules: %v", v)
	}
}

func TestMerge(t *testing.T) {
	user, err := ParseRules([]byte("[[allow]]\ncommands = [\"ls\"]\n"), "policy.toml", UserRules)
	if err != nil {
		t.Fatal(err)
	}
	workspace, err := ParseRules([]byte("[[deny]]\ncommands = [\"ls -a\"]\n"), ".zcoder/policy.toml", WorkspaceRules)
	if err != nil {
		t.Fatal(err)
	}
	p := testPolicy(t, func(c *Config) { c.Rules = Merge(user, nil, workspace) })
	if v := p.Judge(command("ls")); v.Decision != approval.Allow {
		t.Errorf("ls: %v", v)
	}
	if v := p.Judge(command("ls -la")); v.Decision != approval.Deny || v.Rule != `deny rule "ls -a" (.zcoder/policy.toml:1)` {
		t.Errorf("ls -la: %v", v)
	}
	if n := Merge(user, workspace).Len(); n != 2 {
		t.Errorf("%d rules", n)
	}
}

func TestExplain(t *testing.T) {
	p := testPolicy(t, func(c *Config) {
		c.Rules = rules(t, "[[deny]]\ncommands = [\"rm\"]\nreason = \"not here\"\n[[ask]]\ncommands = [\"git push\"]\n")
	})
	e := p.Explain(command("ls; git push"))
	var steps []string
	for _, s := range e.Steps {
		steps = append(steps, s.Rule+" -> "+s.Outcome)
	}
	want := []string{
		"guard -> nothing catastrophic in sight",
		`deny rule "rm" (policy.toml:1) -> does not apply`,
		`ask rule "git push" (policy.toml:4) -> applies: git push`,
		"verdict -> ask",
	}
	if strings.Join(steps, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q, want %q", steps, want)
	}
	if v := p.Judge(command("rm x")); v.Reason != "not here: rm x" {
		t.Errorf("reason %q", v.Reason)
	}
	if strings.Join(e.Verdict.Notes, "; ") != "runs: ls, git; network: git push" {
		t.Errorf("notes %q", e.Verdict.Notes)
	}
}

// asker answers every question the same way and counts them.
type asker struct {
	choice approval.Choice
	asked  int
}

func (a *asker) Ask(context.Context, approval.Request, approval.Verdict) (approval.Answer, error) {
	a.asked++
	return approval.Answer{Choice: a.choice}, nil
}

type nothing struct{}

func (nothing) Record(approval.Record) error { return nil }

// TestGrant runs the policy behind the real gate: a grant covers commands of people,
// and nothing that asks firmly.
func TestGrant(t *testing.T) {
	a := &asker{choice: approval.Conversation}
	p := testPolicy(t, func(c *Config) { c.Rules = rules(t, "[[ask]]\ncommands = [\"git push\"]\n") })
	g := &approval.Gate{Policy: p, Asker: a, Recorder: nothing{}}
	try := func(r approval.Request, asks bool, name string) {
		t.Helper()
		before := a.asked
		if _, err := g.Authorize(context.Background(), r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := a.asked > before; got != asks {
			t.Errorf("%s: asked %v, want %v", name, got, asks)
		}
	}
	try(command("ls"), true, "first command")
	try(command("make"), false, "second command")
	try(command("git push"), true, "ask rule")
	try(with(command("ls"), func(r *approval.Request) { r.Origin = approval.OriginPeer }), true, "a peer's command")
	try(request(approval.ExternalWrite, "x"), true, "external write")
	g.ClearGrant()
	try(command("ls"), true, "after clearing")
	if _, err := g.Authorize(context.Background(), command("rm -rf /")); err == nil {
		t.Error("the guard does not hold behind the gate")
	}
}

func TestJudgeIsFast(t *testing.T) {
	p := testPolicy(t, func(c *Config) { c.Dialect = shellread.Bash })
	start := time.Now()
	p.Judge(command(strings.Repeat("rm -rf a b c; ", 2000)))
	if took := time.Since(start); took > 3*time.Second {
		t.Errorf("2000 deletions took %v", took)
	}
}

// FuzzParseRules holds: never a panic, an error names the file and the line, rules
// and an error exclude each other, and what parses can judge.
func FuzzParseRules(f *testing.F) {
	for _, seed := range []string{
		"[[deny]]\ncommands = [\"rm\", 'git push --force']\nreason = \"x\"\n", "[[allow]]\npaths = [\"a/**\", \"~/x\", \".env\"]\n", "[[ask]]\ntools = [\"mcp__*\"]\n[[ask]]\ntools = \"x\"\n",
		"[deny]\n", "a.b = 1\n", "[[deny]]\ncommands = [[\"x\"]]\n", "[[deny]]\n\"commands\" = [\"x\",]\n", "[[deny.x]]\n", "[[deny]]\ncommands = \"\"\"a\nb\"\"\"\n", "\xff", "[[deny]]\ncommands={a=1}", "[[allow]]\ntools=['[']",
	} {
		f.Add([]byte(seed))
	}
	p := testPolicy(f, nil)
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, scope := range []Scope{UserRules, WorkspaceRules} {
			r, err := ParseRules(data, "p.toml", scope)
			if err != nil {
				if r != nil {
					t.Error("rules beside an error")
				}
				if !strings.HasPrefix(err.Error(), "p.toml") {
					t.Errorf("error without the file: %v", err)
				}
				continue
			}
			p.Set(r)
			v := p.Judge(command("git push --force x; rm -r a"))
			if scope == WorkspaceRules && v.Decision == approval.Allow {
				t.Errorf("workspace rules allow: %q", data)
			}
			p.Judge(request(approval.WorkspaceWrite, "write_file", use("/home/u/ws/a/b", true)))
		}
	})
}
