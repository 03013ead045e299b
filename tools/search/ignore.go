package search

import "zcoder/internal/ignore"

// The kinds of ignore files, by rank: a rule of a kind decides before all rules of
// later kinds, however deep those are.
const (
	kindIgnore  = iota // .ignore
	kindGit            // .gitignore
	kindExclude        // .git/info/exclude
	kinds
)

// ignores are the rules in force in a directory: those of its own files and of the
// directories above, by kind. The zero value has no rules.
type ignores [kinds]*ignore.Chain

// add puts the rules of a file, if there are any, before those of its kind.
func (g *ignores) add(kind int, rules *ignore.Rules) { g[kind] = g[kind].With(rules) }

// ignored reports whether an entry is ignored. It does not look at the directories
// that hold it: whoever walks does not enter ignored ones.
func (g *ignores) ignored(name, path string, isDir bool) bool {
	for _, chain := range g {
		if v := chain.Judge(name, path, isDir); v != ignore.Silent {
			return v == ignore.Ignored
		}
	}
	return false
}
