package mcp

import (
	"path/filepath"
	"slices"
	"strings"
)

// launcher is a kind of program that loads code which its command line does not name.
type launcher struct {
	programs []string
	reads    []string // files that it reads in its directory and those above it
	entries  []string // files that a directory stands for
	endings  []string // that it adds to a name
	loads    string   // what is not pinned
}

// finder is a program that takes what it runs, and from where, from files of the
// directory that it runs in and of those above it.
type finder struct {
	files     []string
	elsewhere []string // words that make it look elsewhere, or nowhere
}

// launchers is the table of programs that load more than they are told.
var launchers = []*launcher{
	{
		programs: []string{"node", "nodejs", "npm", "npx", "pnpm", "pnpx", "yarn", "bun", "bunx", "deno", "tsx", "ts-node", "corepack", "nodemon"},
		reads: []string{
			"package.json", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", "pnpm-workspace.yaml", ".pnp.cjs", ".pnp.loader.mjs", "bunfig.toml",
			"deno.json", "deno.jsonc", "deno.lock", "tsconfig.json",
		},
		entries: []string{"package.json", "index.js", "index.mjs", "index.cjs", "index.ts", "index.json", "server.js"},
		endings: []string{".js", ".mjs", ".cjs", ".ts", ".json", ".node"},
		loads:   "runs code from node_modules, and from files that its scripts import, that this trust does not pin",
	},
	{
		programs: []string{"python", "pythonw", "pypy", "uv", "uvx", "pipx", "poetry", "pdm", "hatch", "pipenv"},
		reads:    []string{"pyproject.toml", "uv.toml", "uv.lock", "poetry.lock", "Pipfile", "Pipfile.lock", ".python-version"},
		entries:  []string{"__main__.py", "__init__.py", "sitecustomize.py", "usercustomize.py"},
		endings:  []string{".py"},
		loads:    "runs code from Python packages, and from modules that its scripts import, that this trust does not pin",
	},
	{
		programs: []string{"ruby", "bundle", "bundler", "rake", "gem"},
		reads:    []string{"Gemfile", "Gemfile.lock", "Rakefile", ".bundle/config"},
		endings:  []string{".rb", ".so"},
		loads:    "runs code that its scripts require and that this trust does not pin",
	},
	{
		programs: []string{"sh", "bash", "dash", "ash", "zsh", "ksh", "fish", "busybox", "xargs", "find"},
		loads:    "starts, through a shell, programs and scripts that this trust does not pin",
	},
	{
		programs: []string{"make", "gmake", "just", "task"},
		reads:    []string{"Makefile", "makefile", "GNUmakefile", "justfile", ".justfile", "Taskfile.yml", "Taskfile.yaml"},
		loads:    "starts programs that this trust does not pin",
	},
	{
		programs: []string{"go", "cargo", "mvn", "gradle", "gradlew", "mvnw", "dotnet", "swift", "zig"},
		reads: []string{
			"go.mod", "go.work", "Cargo.toml", ".cargo/config.toml", ".cargo/config", "build.rs", "pom.xml", "build.gradle", "build.gradle.kts",
			"settings.gradle", "settings.gradle.kts", "global.json", "Package.swift", "build.zig",
		},
		entries: []string{"main.go"},
		loads:   "builds and runs code of the workspace that this trust does not pin",
	},
	{
		programs: []string{"docker", "podman", "docker-compose", "nerdctl"},
		reads:    []string{"compose.yaml", "compose.yml", "docker-compose.yml", "docker-compose.yaml", "Dockerfile", ".env"},
		loads:    "runs an image, and what is mounted into it, that this trust does not pin",
	},
	{
		programs: []string{"perl", "php", "lua", "luajit", "java", "Rscript", "julia", "elixir", "mix"},
		reads:    []string{"composer.json", "mix.exs"},
		endings:  []string{".pm", ".lua", ".class"},
		loads:    "runs code that its scripts load and that this trust does not pin",
	},
	{
		programs: []string{"direnv", "mise", "asdf", "nix", "nix-shell", "devbox"},
		reads: []string{
			".envrc", ".tool-versions", "mise.toml", ".mise.toml", "shell.nix", "default.nix", "flake.nix", "flake.lock", "devbox.json",
		},
		loads: "runs what the files of this workspace set up, which this trust does not pin",
	},
}

var (
	// packageRunners find programs in node_modules.
	packageRunners = []string{"npm", "npx", "pnpm", "pnpx", "yarn", "bun", "bunx"}
	// finders are, by name, the programs that take what they run from files above where
	// they run.
	finders = map[string]finder{
		"npm": {[]string{".npmrc"}, []string{"--prefix"}}, "npx": {[]string{".npmrc"}, nil},
		"pnpm": {[]string{".npmrc", ".pnpmfile.cjs", "pnpm-workspace.yaml"}, []string{"--dir", "-C"}},
		"pnpx": {[]string{".npmrc", ".pnpmfile.cjs", "pnpm-workspace.yaml"}, nil},
		"yarn": {[]string{".npmrc", ".yarnrc", ".yarnrc.yml", ".pnp.cjs", ".pnp.loader.mjs"}, []string{"--cwd"}},
		"bun":  {[]string{".npmrc", "bunfig.toml"}, []string{"--cwd"}}, "bunx": {[]string{".npmrc", "bunfig.toml"}, nil},
		"deno":   {[]string{"deno.json", "deno.jsonc"}, []string{"--no-config", "--config"}},
		"uv":     {[]string{"pyproject.toml", "uv.toml"}, []string{"--directory", "--project", "--no-project", "tool"}},
		"poetry": {[]string{"pyproject.toml"}, []string{"--directory", "--project", "-C", "-P"}},
		"pdm":    {[]string{"pyproject.toml"}, []string{"--project", "-p"}}, "hatch": {[]string{"pyproject.toml", "hatch.toml"}, nil},
		"pipenv": {[]string{"Pipfile"}, nil}, "bundle": {[]string{"Gemfile", ".bundle/config"}, nil},
		"make": {[]string{"GNUmakefile", "makefile", "Makefile"}, []string{"-C", "--directory", "-f", "--file", "--makefile"}},
		"just": {[]string{"justfile", ".justfile"}, []string{"-f", "--justfile"}},
	}
	// harmlessKeys are settings of npm that change nothing of that.
	harmlessKeys = []string{
		"audit", "auto-install-peers", "engine-strict", "fund", "legacy-peer-deps", "loglevel", "package-lock", "progress", "save", "save-exact",
		"save-prefix", "shamefully-hoist", "strict-peer-deps", "strict-peer-dependencies", "update-notifier",
	}
	// downloaders fetch code and run it.
	downloaders = append([]string{"deno", "uv", "uvx", "pipx", "go", "docker", "podman", "nix", "nix-shell"}, packageRunners...)
)

var (
	// dataEndings are of files that servers change as they work.
	dataEndings = []string{".csv", ".db", ".db3", ".duckdb", ".jsonl", ".kuzu", ".log", ".ndjson", ".parquet", ".pid", ".sock", ".sqlite", ".sqlite3", ".tsv"}
	// codeOptions are options of launchers whose value is run.
	codeOptions = []string{
		"-c", "-C", "-e", "-f", "-I", "-m", "-p", "-r", "--config", "--env-file", "--eval", "--experimental-loader", "--file", "--import", "--import-map",
		"--init-file", "--loader", "--makefile", "--preload", "--print", "--rcfile", "--require", "--script-shell", "--with-requirements",
	}
)

// program is the name that a word has as a program: python3.12 is python.
func program(word string) string {
	return strings.TrimRight(filepath.Base(word), "0123456789.-")
}

// kindOf returns the kind of program that a word names, or nil.
func kindOf(word string) *launcher {
	name := program(word)
	for _, r := range launchers {
		if slices.Contains(r.programs, name) {
			return r
		}
	}
	return nil
}
