package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Shells are those that Completion knows.
func Shells() []string { return []string{"bash", "zsh", "fish"} }

// Completion returns a script that has a shell complete the program's flags, their
// values, subcommands and the words of these. It is "" for another shell than those in
// Shells. The script runs nothing of the program.
func Completion(shell string, subs []Sub) string {
	c := completion{top: tableFlags(func(Setting) bool { return true })}
	for _, sub := range subs {
		c.subs = append(c.subs, completedSub{sub.Name, sub.Meaning, sub.flags(), sub.words()})
	}
	switch shell {
	case "bash":
		return c.bash()
	case "zsh":
		return c.zsh()
	case "fish":
		return c.fish()
	}
	return ""
}

// completion is what there is to complete.
type completion struct {
	top  []completedFlag
	subs []completedSub
}

type completedSub struct {
	name, meaning string
	flags         []completedFlag
	words         []string // for the first word
}

type completedFlag struct {
	long, short, meaning string
	arg                  string   // stands for the value; "" means that none follows
	values               []string // what the value can be, if that is a list
	path                 bool     // the value names a file or directory
}

// names returns the flag as it is typed.
func (f completedFlag) names() []string {
	if f.short == "" {
		return []string{"--" + f.long}
	}
	return []string{"--" + f.long, "-" + f.short}
}

// tableFlags are the flags of the settings that fit.
func tableFlags(fits func(Setting) bool) []completedFlag {
	var list []completedFlag
	for _, s := range Table() {
		if !fits(s) {
			continue
		}
		if s.Flag != "" {
			list = append(list, completedFlag{s.Flag, s.Short, s.Meaning, s.Arg, s.Enum, s.Kind == Path})
		}
		for _, sw := range s.Switches {
			list = append(list, completedFlag{long: sw.Flag, meaning: sw.Meaning})
		}
	}
	return list
}

// flags are the subcommand's own flags and those of settings that it takes.
func (s Sub) flags() []completedFlag {
	own := pflag.NewFlagSet(s.Name, pflag.ContinueOnError)
	own.SortFlags = false
	if s.Flags != nil {
		s.Flags(own)
	}
	var list []completedFlag
	own.VisitAll(func(f *pflag.Flag) {
		arg, text := pflag.UnquoteUsage(f)
		list = append(list, completedFlag{long: f.Name, short: f.Shorthand, meaning: text, arg: arg})
	})
	return append(list, tableFlags(func(t Setting) bool {
		return s.takes(t.Name) && own.Lookup(t.Flag) == nil
	})...)
}

var wordOfUsage = regexp.MustCompile(`^\[?([a-z]+)\b`)

// words are what the first word can be: the lower-case words that Usage begins its
// alternatives with.
func (s Sub) words() []string {
	if s.Words != nil {
		return s.Words()
	}
	var list []string
	for part := range strings.SplitSeq(s.Usage, "|") {
		m := wordOfUsage.FindStringSubmatch(strings.TrimSpace(part))
		if m != nil && !slices.Contains(list, m[1]) {
			list = append(list, m[1])
		}
	}
	return list
}

// valued are the names of all flags that a value follows. A name has the same meaning
// everywhere in this.
func (c completion) valued() []string {
	var names []string
	add := func(flags []completedFlag) {
		for _, f := range flags {
			for _, name := range f.names() {
				if f.arg != "" && !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
	}
	add(c.top)
	for _, sub := range c.subs {
		add(sub.flags)
	}
	return names
}

func (c completion) names() []string {
	var names []string
	for _, sub := range c.subs {
		names = append(names, sub.name)
	}
	return names
}

func allNames(flags []completedFlag) string {
	var names []string
	for _, f := range flags {
		names = append(names, f.names()...)
	}
	return strings.Join(names, " ")
}

// bash works from version 3.2 on, which darwin has. The names in it are ours and hold
// nothing that bash would act on. Where it offers nothing bash completes names of files.
func (c completion) bash() string {
	var b strings.Builder
	fmt.Fprintf(&b, bashHead, strings.Join(c.valued(), "|"))
	arm := func(sub string, flags []completedFlag) {
		for _, f := range flags {
			pattern := `"` + sub + " " + strings.Join(f.names(), `"|"`+sub+" ") + `"`
			switch {
			case f.values != nil:
				fmt.Fprintf(&b, "\t%s) COMPREPLY=($(compgen -W \"%s\" -- \"$cur\")); return ;;\n", pattern, strings.Join(f.values, " "))
			case f.arg != "":
				fmt.Fprintf(&b, "\t%s) return ;;\n", pattern)
			}
		}
	}
	arm("", c.top)
	for _, sub := range c.subs {
		arm(sub.name, sub.flags)
	}
	b.WriteString("\tesac\n\tcase \"$sub\" in\n")
	fmt.Fprintf(&b, "\t\"\") words=\"%s\"; flags=\"%s\" ;;\n", strings.Join(c.names(), " "), allNames(c.top))
	for _, sub := range c.subs {
		fmt.Fprintf(&b, "\t%s) words=\"%s\"; flags=\"%s\" ;;\n", sub.name, strings.Join(sub.words, " "), allNames(sub.flags))
	}
	b.WriteString(bashTail)
	return b.String()
}

const bashHead = `# Completion of zcoder for bash. Put it where bash looks for completions, or have your
# ~/.bashrc say: source <(zcoder completion bash)
_zcoder() {
	local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}"
	local i=1 sub="" behind=0 words="" flags=""
	# bash takes the = of --flag=value for a word.
	if [ "$cur" = "=" ]; then
		cur=""
	elif [ "$prev" = "=" ]; then
		prev="${COMP_WORDS[COMP_CWORD-2]}"
	fi
	while [ "$i" -lt "$COMP_CWORD" ]; do
		case "${COMP_WORDS[i]}" in
		--) return ;;
		%s)
			i=$((i+1))
			if [ "${COMP_WORDS[i]}" = "=" ]; then
				i=$((i+1))
			fi ;;
		-*|=) ;;
		*)
			if [ -n "$sub" ]; then
				behind=1
			else
				sub="${COMP_WORDS[i]}"
			fi ;;
		esac
		i=$((i+1))
	done
	COMPREPLY=()
	case "$sub $prev" in
`

const bashTail = `	esac
	case "$cur" in
	-*) COMPREPLY=($(compgen -W "$flags" -- "$cur")) ;;
	*)
		if [ "$behind" = 0 ]; then
			COMPREPLY=($(compgen -W "$words" -- "$cur"))
		fi ;;
	esac
}
complete -o default -F _zcoder zcoder
`

// zsh uses _arguments. In its specifications brackets and colons need a backslash.
func (c completion) zsh() string {
	var b strings.Builder
	b.WriteString(zshHead)
	b.WriteString("\t_arguments -C -s")
	zshFlags(&b, c.top)
	b.WriteString(" \\\n\t\t'1: :->first' '*:: :->rest'\n\tcase $state in\n\tfirst)\n\t\tsubs=(\n")
	for _, sub := range c.subs {
		fmt.Fprintf(&b, "\t\t\t%s\n", single(sub.name+":"+sub.meaning))
	}
	b.WriteString("\t\t)\n\t\t_describe subcommand subs\n\t\t_files ;;\n\trest)\n\t\tcase $words[1] in\n")
	for _, sub := range c.subs {
		fmt.Fprintf(&b, "\t\t%s)\n\t\t\t_arguments -s", sub.name)
		zshFlags(&b, sub.flags)
		if len(sub.words) > 0 {
			fmt.Fprintf(&b, " \\\n\t\t\t\t%s", single("1: :("+strings.Join(sub.words, " ")+")"))
		}
		b.WriteString(" \\\n\t\t\t\t'*: :_files' ;;\n")
	}
	b.WriteString("\t\t*) _files ;;\n\t\tesac ;;\n\tesac\n}\n" + zshTail)
	return b.String()
}

const zshHead = `#compdef zcoder
# Completion of zcoder for zsh. Put it as _zcoder into a directory of $fpath, or have
# your ~/.zshrc say, behind compinit: source <(zcoder completion zsh)
_zcoder() {
	local curcontext="$curcontext" state
	local -a line subs
	typeset -A opt_args
`

const zshTail = `if [ "$funcstack[1]" = "_zcoder" ]; then
	_zcoder "$@"
else
	compdef _zcoder zcoder
fi
`

func zshFlags(b *strings.Builder, flags []completedFlag) {
	mark := strings.NewReplacer(`\`, `\\`, "[", `\[`, "]", `\]`, ":", `\:`)
	for _, f := range flags {
		spec := "[" + mark.Replace(f.meaning) + "]"
		long := "--" + f.long
		if f.arg != "" {
			long += "="
			action := " "
			switch {
			case f.path:
				action = "_files"
			case f.values != nil:
				action = "(" + strings.Join(f.values, " ") + ")"
			}
			spec += ":" + mark.Replace(f.arg) + ":" + action
		}
		b.WriteString(" \\\n\t\t" + single(long+spec))
		if f.short != "" {
			b.WriteString(" " + single("-"+f.short+spec))
		}
	}
}

// fish asks two functions of ours where the cursor is.
func (c completion) fish() string {
	var b strings.Builder
	fmt.Fprintf(&b, fishHead, strings.Join(c.valued(), " "))
	for _, f := range c.top {
		fishFlag(&b, "__zcoder_first", f)
	}
	for _, sub := range c.subs {
		fmt.Fprintf(&b, "complete -c zcoder -n __zcoder_first -a %s -d %s\n", sub.name, fishQuote(sub.meaning))
	}
	for _, sub := range c.subs {
		for _, f := range sub.flags {
			fishFlag(&b, "'__zcoder_in "+sub.name+"'", f)
		}
		if len(sub.words) > 0 {
			fmt.Fprintf(&b, "complete -c zcoder -n '__zcoder_in %s' -a '%s'\n", sub.name, strings.Join(sub.words, " "))
		}
	}
	return b.String()
}

const fishHead = `# Completion of zcoder for fish. Put it as zcoder.fish into ~/.config/fish/completions.
function __zcoder_words
	set -l skip 0
	for token in (commandline -opc)[2..-1]
		if test $skip = 1
			set skip 0
			continue
		end
		switch $token
			case %s
				set skip 1
			case '-*'
			case '*'
				echo $token
		end
	end
end
function __zcoder_first
	set -l words (__zcoder_words)
	test (count $words) = 0
end
function __zcoder_in
	set -l words (__zcoder_words)
	test (count $words) = 1; and test $words[1] = $argv[1]
end
`

func fishFlag(b *strings.Builder, when string, f completedFlag) {
	fmt.Fprintf(b, "complete -c zcoder -n %s -l %s", when, f.long)
	if f.short != "" {
		b.WriteString(" -s " + f.short)
	}
	switch {
	case f.path:
		b.WriteString(" -r -F")
	case f.values != nil:
		fmt.Fprintf(b, " -x -a '%s'", strings.Join(f.values, " "))
	case f.arg != "":
		b.WriteString(" -x")
	}
	b.WriteString(" -d " + fishQuote(f.meaning) + "\n")
}

// single is text as one word of zsh.
func single(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// fishQuote is text as one word of fish, which knows two escapes in single quotes.
func fishQuote(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(text) + "'"
}
