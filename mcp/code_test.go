package mcp

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// programs are stand-ins for runtimes, in a directory outside the workspace: nothing
// here is run.
func programs(t *testing.T, names ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range names {
		put(t, filepath.Join(dir, name), "#!/bin/sh\n", 0o755)
	}
	return dir
}

func put(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// pinCase is an entry and a file of the workspace that it runs.
type pinCase struct {
	entry string
	file  string            // one byte of it is changed
	with  map[string]string // other files that there are
}

var pinCases = map[string]pinCase{
	"shell script without an ending":  {`"command":"sh","args":["run-me"]`, "run-me", nil},
	"python script without an ending": {`"command":"python3","args":["tool"]`, "tool", nil},
	"node adds the ending":            {`"command":"node","args":["server"]`, "server.js", nil},
	"node in another directory":       {`"command":"node","args":["server"],"cwd":"sub"`, "sub/server.js", nil},
	"data by name":                    {`"command":"node","args":["/x.js","--config","conf"]`, "conf", nil},
	"behind an equals sign":           {`"command":"node","args":["--import=./hook","/x.js"]`, "hook", nil},
	"behind an option":                {`"command":"node","args":["--require","hook.cjs","/x.js"]`, "hook.cjs", nil},
	"glued to an option":              {`"command":"ruby","args":["-r./hook","/x.rb"]`, "hook", nil},
	"ruby adds the ending":            {`"command":"ruby","args":["-r","./hook","/x.rb"]`, "hook.rb", nil},
	"perl adds the ending":            {`"command":"perl","args":["-Ilib","-MHook","/x.pl"]`, "lib/Hook.pm", nil},
	"python, an application by name":  {`"command":"env","args":["python3","/usr/bin/uvicorn","app:main"]`, "app.py", nil},
	"a file URL":                      {`"command":"node","args":["--import","file://ROOT/hook.mjs","/x.js"]`, "hook.mjs", nil},
	"an absolute path":                {`"command":"python3","args":["ROOT/tool"]`, "tool", nil},
	"text of a shell":                 {`"command":"sh","args":["-c","cd . && FOO=1 exec ./run 2>&1"]`, "run", nil},
	"text of a shell elsewhere":       {`"command":"sh","args":["-c","cd deep/er && ./run"]`, "deep/er/run", nil},
	"env":                             {`"command":"env","args":["A=b","python3","tool"]`, "tool", nil},
	"python module":                   {`"command":"python3","args":["-m","pkg"]`, "pkg/__main__.py", nil},
	"python module in a package":      {`"command":"python3","args":["-m","pkg.server"]`, "pkg/server.py", nil},
	"the package around it":           {`"command":"python3","args":["-mpkg.server"]`, "pkg/__init__.py", map[string]string{"pkg/server.py": "x"}},
	"python module from PYTHONPATH":   {`"command":"python3","args":["-m","mod"],"env":{"PYTHONPATH":"lib:/usr/lib"}`, "lib/mod.py", nil},
	"python start file of a path":     {`"command":"python3","args":["/x.py"],"env":{"PYTHONPATH":"lib"}`, "lib/sitecustomize.py", nil},
	"python directory":                {`"command":"python3","args":["srv"]`, "srv/__main__.py", nil},
	"virtual environment":             {`"command":".venv/bin/python3","args":["/x.py"]`, ".venv/pyvenv.cfg", nil},
	"node here":                       {`"command":"node","args":["."]`, "index.js", nil},
	"the main file of a package":      {`"command":"node","args":["."]`, "lib/main.js", map[string]string{"package.json": `{"main":"./lib/main"}`}},
	"package.json":                    {`"command":"node","args":["."]`, "package.json", nil},
	"npm run, the scripts":            {`"command":"npm","args":["run","x"]`, "package.json", nil},
	"npm run, a file in a script":     {`"command":"npm","args":["start"]`, "bin/serve", map[string]string{"package.json": `{"scripts":{"start":"FOO=1 node bin/serve --port 1"}}`}},
	"npm run, settings":               {`"command":"npm","args":["run","x"]`, ".npmrc", nil},
	"npm of the directory above":      {`"command":"npm","args":["run","x"],"cwd":"sub"`, "package.json", map[string]string{"sub/x": ""}},
	"npm elsewhere":                   {`"command":"npm","args":["--prefix","web","run","x"]`, "web/package.json", nil},
	"npx, a program":                  {`"command":"npx","args":["-y","tool@1.2"]`, "node_modules/.bin/tool", nil},
	"npx, a package":                  {`"command":"npx","args":["@a/tool"]`, "node_modules/@a/tool/package.json", nil},
	"npx, its code":                   {`"command":"npx","args":["@a/tool"]`, "node_modules/@a/tool/dist/cli.js", map[string]string{"node_modules/@a/tool/package.json": `{"bin":{"tool":"dist/cli.js"}}`}},
	"npx, the link of its program":    {`"command":"npx","args":["@a/tool"]`, "node_modules/.bin/tool-cli", map[string]string{"node_modules/@a/tool/package.json": `{"bin":{"tool-cli":"cli.js"}}`}},
	"python module behind a shell":    {`"command":"sh","args":["-c","exec python3 -u -m 'pkg.x'; true"]`, "pkg/x.py", nil},
	"npx elsewhere":                   {`"command":"npm","args":["--prefix","web","exec","tool"]`, "web/node_modules/.bin/tool", nil},
	"npx behind a shell":              {`"command":"sh","args":["-c","exec npx tool"]`, "node_modules/.bin/tool", nil},
	"uv":                              {`"command":"uv","args":["run","mcp-tool"]`, "pyproject.toml", nil},
	"uv elsewhere":                    {`"command":"uv","args":["--directory","srv","run","main"]`, "srv/pyproject.toml", nil},
	"deno":                            {`"command":"deno","args":["run","-A","main.ts"]`, "main.ts", nil},
	"deno settings":                   {`"command":"deno","args":["task","serve"]`, "deno.json", nil},
	"bun":                             {`"command":"bun","args":["src"]`, "src/index.ts", nil},
	"make":                            {`"command":"make","args":["-C","srv","serve"]`, "srv/Makefile", nil},
	"NODE_OPTIONS":                    {`"command":"node","args":["/x.js"],"env":{"NODE_OPTIONS":"--max=1 --require ./hook"}`, "hook.js", nil},
	"BASH_ENV":                        {`"command":"bash","args":["/x"],"env":{"BASH_ENV":"rc"}`, "rc", nil},
	"LD_PRELOAD":                      {`"command":"node","args":["/x"],"env":{"LD_PRELOAD":"ROOT/evil.so"}`, "evil.so", nil},
	"GIT_SSH_COMMAND":                 {`"command":"node","args":["/x"],"env":{"GIT_SSH_COMMAND":"sh ./ssh"}`, "ssh", nil},
	"a program in PATH":               {`"command":"sh","args":["-c","exec tool"],"env":{"PATH":"ROOT/tools:/usr/bin:/bin"}`, "tools/tool", nil},
	"a program in a relative PATH":    {`"command":"sh","args":["-c","exec tool"],"env":{"PATH":"/usr/bin:/bin:tools"}`, "tools/tool", nil},
	"the interpreter of a script":     {`"command":"./server"`, "interp", map[string]string{"server": "#!./interp -x\n"}},
	"settings of an interpreter":      {`"command":"./server"`, "package.json", map[string]string{"server": "#!/usr/bin/env node\n"}},
	"a word of an interpreter":        {`"command":"./server"`, "hook.js", map[string]string{"server": "#!/usr/bin/env -S node -r ./hook.js\n"}},
	"the interpreter of an argument":  {`"command":"env","args":["./server"]`, "interp", map[string]string{"server": "#!./interp -x\n"}},
	"a program in your PATH":          {`"command":"sh","args":["-c","exec tool"]`, "inpath/tool", nil},
	"a program in your relative PATH": {`"command":"sh","args":["-c","exec tool"]`, "relpath/tool", nil},
	"a script with an ending of data": {`"command":"python3","args":["-u","x.db"]`, "x.db", nil},
	"code from an option":             {`"command":"node","args":["/x.js","--require","x.log"]`, "x.log", nil},
	"code from a variable":            {`"command":"python3","args":["/x.py"],"env":{"PYTHONSTARTUP":"x.log"}`, "x.log", nil},
	"data that also runs":             {`"command":"python3","args":["x.db","--db","x.db"]`, "x.db", nil},
	"a program of the workspace":      {`"command":"./server"`, "server", nil},
}

func TestOneByteOfWhatRunsStopsIt(t *testing.T) {
	bin := programs(t, "node", "python3", "ruby", "perl", "npm", "npx", "uv", "deno", "bun", "make")
	for name, c := range pinCases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.env["PATH"] = bin + ":" + b.env["PATH"] + ":relpath:" + filepath.Join(b.root, "inpath")
			put(t, filepath.Join(b.root, c.file), "{}\n", 0o755)
			for file, text := range c.with {
				put(t, filepath.Join(b.root, file), text, 0o755)
			}
			if strings.Contains(c.entry, ".venv") {
				put(t, filepath.Join(b.root, ".venv/bin/x"), "", 0o644)
				if err := os.Symlink(filepath.Join(bin, "python3"), filepath.Join(b.root, ".venv/bin/python3")); err != nil {
					t.Fatal(err)
				}
			}
			b.file(Project, `{"mcpServers":{"s":{`+strings.ReplaceAll(c.entry, "ROOT", b.root)+`}}}`)
			rv, err := b.open().Review("")
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(rv.Text, "pins     "+c.file+" (") {
				t.Errorf("the trust text does not name %s:\n%s", c.file, rv.Text)
			}
			if strings.Contains(rv.Text, "pins     /") {
				t.Errorf("a file outside the workspace is pinned:\n%s", rv.Text)
			}
			b.trust(b.open())
			if s, why := standing(t, b, "s"); s != Ready {
				t.Fatalf("after trust it is %s: %s", s, why)
			}
			put(t, filepath.Join(b.root, c.file), "{}\t", 0o755)
			if s, why := standing(t, b, "s"); s != Changed || !strings.Contains(why, c.file) {
				t.Errorf("after one byte of %s changed it is %s: %s", c.file, s, why)
			}
			if err := os.Remove(filepath.Join(b.root, c.file)); err != nil {
				t.Fatal(err)
			}
			if s, why := standing(t, b, "s"); s == Ready {
				t.Errorf("without %s it is %s: %s", c.file, s, why)
			}
		})
	}
}

// TestAFileThatComesLaterStopsIt has files that a program would prefer appear after
// the approval.
func TestAFileThatComesLaterStopsIt(t *testing.T) {
	bin := programs(t, "node", "npx", "python3")
	for name, c := range map[string]pinCase{
		"script":   {`"command":"sh","args":["run-me"]`, "run-me", nil},
		"module":   {`"command":"python3","args":["-m","pkg"]`, "pkg.py", nil},
		"package":  {`"command":"npx","args":["-y","tool"]`, "node_modules/.bin/tool", nil},
		"settings": {`"command":"npx","args":["-y","tool"]`, ".npmrc", nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.env["PATH"] = bin + ":" + b.env["PATH"]
			b.file(Project, `{"mcpServers":{"s":{`+c.entry+`}}}`)
			b.trust(b.open())
			if s, why := standing(t, b, "s"); s != Ready {
				t.Fatalf("after trust it is %s: %s", s, why)
			}
			put(t, filepath.Join(b.root, c.file), "x", 0o755)
			if s, why := standing(t, b, "s"); s != Changed || !strings.Contains(why, "new") {
				t.Errorf("with %s it is %s: %s", c.file, s, why)
			}
		})
	}
}

func TestALinkThatLeadsElsewhereStopsIt(t *testing.T) {
	b := newBench(t)
	outside := t.TempDir()
	put(t, filepath.Join(outside, "a"), "same", 0o644)
	put(t, filepath.Join(outside, "b"), "same", 0o644)
	link := filepath.Join(b.root, "script")
	relink := func(to string) {
		t.Helper()
		_ = os.Remove(link) // there is none at first
		if err := os.Symlink(filepath.Join(outside, to), link); err != nil {
			t.Fatal(err)
		}
	}
	relink("a")
	b.file(Project, `{"mcpServers":{"s":{"command":"sh","args":["script"]}}}`)
	b.trust(b.open())
	if s, why := standing(t, b, "s"); s != Ready {
		t.Fatalf("after trust it is %s: %s", s, why)
	}
	relink("b")
	if s, why := standing(t, b, "s"); s != Changed {
		t.Errorf("with the link elsewhere it is %s: %s", s, why)
	}
}

func TestTrustSaysWhatIsNotPinned(t *testing.T) {
	bin := programs(t, "node", "npx", "python3", "docker", "uvx")
	for entry, want := range map[string][]string{
		`"command":"node","args":["."]`:                          {"! note   runs code from node_modules", "this trust does not pin"},
		`"command":"npx","args":["-y","x"]`:                      {"node_modules", "can download code and run it, which this trust does not pin"},
		`"command":"python3","args":["x.py"]`:                    {"runs code from Python packages, and from modules that its scripts import, that this trust does not pin"},
		`"command":"sh","args":["-c","x"]`:                       {"through a shell"},
		`"command":"docker","args":["run","x"]`:                  {"runs an image", "can download code"},
		`"command":"env","args":["A=1","uvx","x"]`:               {"Python packages", "can download code"},
		`"command":"true","env":{"NODE_OPTIONS":"-r x"}`:         {"! note   NODE_OPTIONS MAKES PROGRAMS LOAD OTHER CODE"},
		`"command":"true","env":{"DYLD_INSERT_LIBRARIES":"x"}`:   {"DYLD_INSERT_LIBRARIES MAKES"},
		`"command":"true","env":{"git_ssh":"x"}`:                 {"git_ssh MAKES"},
		`"command":"true","env":{"ENV":"x","PERL5OPT":"-Mx"}`:    {"ENV MAKES", "PERL5OPT MAKES"},
		`"command":"/usr/bin/env","env":{"PATH":"x:/usr/bin"}`:   {"PATH MAKES"},
		`"command":"true","env":{"GREETING":"hi","TOKEN":"${}"}`: nil,
	} {
		b := newBench(t)
		b.env["PATH"] = bin + ":" + b.env["PATH"]
		b.file(Project, `{"mcpServers":{"s":{`+entry+`}}}`)
		rv, err := b.open().Review("")
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range want {
			if !strings.Contains(rv.Text, text) {
				t.Errorf("%s: the trust text does not say %q:\n%s", entry, text, rv.Text)
			}
		}
		if want == nil && strings.Contains(rv.Text, "! note") {
			t.Errorf("%s: a note without a reason:\n%s", entry, rv.Text)
		}
	}
}

func TestDataOfAServerMayChange(t *testing.T) {
	bin := programs(t, "uvx", "node")
	for _, entry := range []string{
		`"command":"uvx","args":["mcp-server-sqlite","--db-path","data/x.db"]`,
		`"command":"uvx","args":["mcp-server-sqlite","--db-path=data/x.db"]`,
		`"command":"node","args":["/x.js","data/x.db"]`,
		`"command":"true","args":["data/x.db"]`,
		`"command":"true","env":{"MEMORY_FILE_PATH":"data/x.db"}`,
	} {
		b := newBench(t)
		b.env["PATH"] = bin + ":" + b.env["PATH"]
		b.file(Project, `{"mcpServers":{"s":{`+entry+`}}}`)
		rv, err := b.open().Review("")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(rv.Text, "! note   takes data/x.db for data, which this trust does not pin") {
			t.Errorf("%s: the trust text says:\n%s", entry, rv.Text)
		}
		b.trust(b.open())
		put(t, filepath.Join(b.root, "data/x.db"), "x", 0o644)
		if s, why := standing(t, b, "s"); s != Ready {
			t.Errorf("%s: after its data changed it is %s: %s", entry, s, why)
		}
	}
}

// TestPinningIsBounded gives entries whose pinning would take long.
func TestPinningIsBounded(t *testing.T) {
	b := newBench(t)
	put(t, filepath.Join(b.root, "many", "f"), "x", 0o644)
	var words []string
	for i := range 2000 {
		words = append(words, fmt.Sprint("w", i))
	}
	args, _ := json.Marshal([]string{"-c", strings.Join(words, " ")})
	big := filepath.Join(b.root, "big")
	put(t, big, "", 0o644)
	if err := os.Truncate(big, maxDigest+1); err != nil {
		t.Fatal(err)
	}
	b.file(Project, `{"mcpServers":{"words":{"command":"sh","args":`+string(args)+`},"big":{"command":"sh","args":["big"]},"pipe":{"command":"sh","args":["pipe"]}}}`)
	mkfifo(t, filepath.Join(b.root, "pipe"))
	b.trust(b.open())
	for name, want := range map[string]string{"words": "more than 1000 words", "big": "too large to be pinned"} {
		if s, why := standing(t, b, name); s != Broken || !strings.Contains(why, want) {
			t.Errorf("%s is %s: %s", name, s, why)
		}
	}
	if s, why := standing(t, b, "pipe"); s != Ready {
		t.Errorf("pipe is %s: %s", s, why)
	}
	_ = os.Remove(filepath.Join(b.root, "pipe"))
	put(t, filepath.Join(b.root, "pipe"), "x", 0o644)
	if s, _ := standing(t, b, "pipe"); s != Changed {
		t.Errorf("after the pipe became a file it is %s", s)
	}
}

// TestYourOwnServersRunNothingOfTheWorkspaceUnasked has look-ups of the person's own
// servers lead into the workspace.
func TestYourOwnServersRunNothingOfTheWorkspaceUnasked(t *testing.T) {
	bin := programs(t, "npx", "npm", "python3", "yarn", "uv", "uvx")
	for name, c := range map[string]struct {
		entry, file, want string
	}{
		"through python, letters":     {`"command":"python3","args":["-um","pkg.x"]`, "pkg/x.py", "pkg/x.py in the workspace"},
		"a project of uv":             {`"command":"uv","args":["run","--with","mcp","mcp","run","/s.py"]`, "pyproject.toml", "pyproject.toml in the workspace"},
		"uv elsewhere":                {`"command":"uv","args":["run","--directory","/","x"]`, "pyproject.toml", ""},
		"a tool of uv":                {`"command":"uvx","args":["x"]`, "pyproject.toml", ""},
		"a script of a package":       {`"command":"yarn","args":["serve"]`, "package.json", "package.json in the workspace"},
		"npm elsewhere":               {`"command":"npm","args":["run","x","--prefix=/"]`, "package.json", ""},
		"an option of the server":     {`"command":"npx","args":["x","--prefix","/"]`, "package.json", "package.json in the workspace"},
		"a Makefile":                  {`"command":"sh","args":["-c","make serve"]`, "Makefile", "Makefile in the workspace"},
		"what decides for yarn":       {`"command":"yarn","args":["dlx","tool"]`, ".yarnrc.yml", ".yarnrc.yml in the workspace"},
		"a package that is no JSON":   {`"command":"npx","args":["tool"]`, "package.json", "package.json in the workspace"},
		"through PATH":                {`"command":"tool"`, "bin/tool", "lies in the workspace"},
		"through npx":                 {`"command":"npx","args":["-y","@a/tool@latest"]`, "node_modules/@a/tool/package.json", "it would find node_modules/@a/tool/package.json in the workspace"},
		"through npx, bin":            {`"command":"npx","args":["tool"]`, "node_modules/.bin/tool", "node_modules/.bin/tool in the workspace"},
		"through python":              {`"command":"python3","args":["-m","pkg.x"]`, "pkg/x.py", "pkg/x.py in the workspace"},
		"a path of yours":             {`"command":"./bin/tool"`, "bin/tool", ""},
		"a script":                    {`"command":"sh","args":["bin/tool"]`, "bin/tool", ""},
		"a working directory outside": {`"command":"npx","args":["tool"],"cwd":"/"`, "node_modules/.bin/tool", ""},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.env["PATH"] = filepath.Join(b.root, "bin") + ":" + bin + ":" + b.env["PATH"]
			b.file(User, `{"mcpServers":{"s":{`+c.entry+`}}}`)
			put(t, filepath.Join(b.root, c.file), "#!/bin/sh\n", 0o755)
			s, why := standing(t, b, "s")
			if c.want == "" && s != Ready || c.want != "" && (s != Broken || !strings.Contains(why, c.want)) {
				t.Errorf("it is %s: %s; want %q", s, why, c.want)
			}
		})
	}
	runnersAreNotSteered(t, bin)
	// A later directory of the PATH counts, and a link into the workspace does not.
	b := newBench(t)
	links := t.TempDir()
	put(t, filepath.Join(b.root, "tool"), "#!/bin/sh\n", 0o755)
	if err := os.Symlink(filepath.Join(b.root, "tool"), filepath.Join(links, "python3")); err != nil {
		t.Fatal(err)
	}
	b.env["PATH"] = links
	b.file(User, `{"mcpServers":{"s":{"command":"python3"}}}`)
	if s, why := standing(t, b, "s"); s != Broken || !strings.Contains(why, "lies in the workspace") {
		t.Errorf("with a link into the workspace it is %s: %s", s, why)
	}
	b.env["PATH"] = links + ":" + bin
	if s, why := standing(t, b, "s"); s != Ready {
		t.Errorf("with another program behind it is %s: %s", s, why)
	}
}

// runnersAreNotSteered has files of the workspace say what npx is to run.
func runnersAreNotSteered(t *testing.T, bin string) {
	t.Helper()
	for _, c := range []struct {
		name, file, text string
		want             Standing
	}{
		{"another shell", ".npmrc", "save-exact=true\nscript-shell=./evil\n", Broken},
		{"another registry", ".npmrc", "@a:registry = http://evil.example/\n", Broken},
		{"a quoted name", ".npmrc", "\"node-options\"=-r ./evil\n", Broken},
		{"behind a carriage return", ".npmrc", "# x\rscript-shell=./evil", Broken},
		{"settings that do not matter", ".npmrc", "; ours\n\nengine-strict = true\nsave-exact=true\n", Ready},
		{"a program of this name", "package.json", `{"name":"x","bin":{"tool":"evil.js"}}`, Broken},
		{"a program of this name and version", "package.json", `{"name":"x","bin":{"tool@latest":"evil.js"}}`, Broken},
		{"the package itself", "package.json", `{"name":"@a/tool","bin":"evil.js"}`, Broken},
		{"a script of this name, which npx does not run", "package.json", `{"scripts":{"tool":"x"}}`, Ready},
		{"a program by the name of a file", "package.json", `{"bin":{"dir":"x.js"}}`, Ready},
		{"a package of another name", "package.json", `{"name":"x","bin":{"y":"y.js"},"scripts":{"test":"tool"}}`, Ready},
	} {
		b := newBench(t)
		b.env["PATH"] = bin + ":" + b.env["PATH"]
		b.file(User, `{"mcpServers":{"s":{"command":"npx","args":["-y","tool@latest","./dir","http://h/dir"]},"plain":{"command":"npx","args":["tool"]},"out":{"command":"npx","args":["tool"],"cwd":"/"}}}`)
		put(t, filepath.Join(b.root, c.file), c.text, 0o644)
		if s, why := standing(t, b, "s"); s != c.want || s == Broken && !strings.Contains(why, c.file+" in the workspace") {
			t.Errorf("%s: it is %s: %s; want %s", c.name, s, why, c.want)
		}
		if s, why := standing(t, b, "out"); s != Ready {
			t.Errorf("%s: run elsewhere it is %s: %s", c.name, s, why)
		}
	}
}

// TestPythonTakesNoModuleOfTheWorkspace: a file of the workspace by the name of one of
// Python's own modules is not taken for it.
func TestPythonTakesNoModuleOfTheWorkspace(t *testing.T) {
	for _, c := range []struct {
		scope   Scope
		command string
		args    []string
		env     map[string]string
		want    bool
	}{
		{User, "python3", []string{"-m", "server"}, nil, true},
		{User, "/usr/bin/python3.12", []string{"-B", "-um", "server"}, nil, true},
		{User, "sh", []string{"-c", "exec python3 -c 'import server'"}, nil, true},
		{User, "python3", []string{"/srv/server.py", "-m", "x"}, nil, false},
		{User, "sh", []string{"-c", "python3 /srv/server.py"}, nil, false},
		{User, "node", []string{"-m", "x"}, nil, false},
		{User, "python3", []string{"-m", "server"}, map[string]string{safePath: ""}, false},
		{Project, "python3", []string{"-m", "server"}, nil, false},
	} {
		s := Server{Scope: c.scope, Command: c.command, Args: c.args, Env: c.env}
		env := s.environment(func(string) (string, bool) { return "", false })
		if got := slices.Contains(env, safePath+"=1"); got != c.want {
			t.Errorf("%s %s %q %v: %v; want %v", c.scope, c.command, c.args, env, got, c.want)
		}
	}
}

// TestALinkedDirectoryIsWhereItLeads has a server run in a link: what it finds above is
// above the directory that the link names.
func TestALinkedDirectoryIsWhereItLeads(t *testing.T) {
	b := newBench(t)
	b.env["PATH"] = programs(t, "npm") + ":" + b.env["PATH"]
	put(t, filepath.Join(b.root, "b/c/x"), "", 0o644)
	put(t, filepath.Join(b.root, "b/package.json"), `{"scripts":{"serve":"true"}}`, 0o644)
	if err := os.Symlink("b/c", filepath.Join(b.root, "link")); err != nil {
		t.Fatal(err)
	}
	b.file(Project, `{"mcpServers":{"s":{"command":"npm","args":["run","serve"],"cwd":"link"}}}`)
	b.trust(b.open())
	if s, why := standing(t, b, "s"); s != Ready {
		t.Fatalf("after trust it is %s: %s", s, why)
	}
	put(t, filepath.Join(b.root, "b/package.json"), `{"scripts":{"serve":"evil"}}`, 0o644)
	if s, why := standing(t, b, "s"); s != Changed {
		t.Errorf("after the scripts changed it is %s: %s", s, why)
	}
}

func mkfifo(t *testing.T, path string) {
	t.Helper()
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
}
