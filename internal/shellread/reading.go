// Package shellread reads a shell command before it runs: which programs it would
// start, which files it would write, whom it would contact, and which parts cannot be
// known from the text alone.
//
// It follows constant assignments, directory changes, functions, aliases, wrappers
// (sudo, env, xargs, find -exec, sh -c, …) and nested shells, and it never runs or
// opens anything: what it knows of the machine comes in through Options. Whatever it
// cannot follow is reported as opaque, never dropped. Package policy judges with it;
// a reading is an aid, not a proof that a command is harmless.
package shellread

// Dialect is the shell language that a command is read in. The zero value is Zsh.
type Dialect uint8

// The dialects, named for the shell that will run the command.
const (
	Zsh Dialect = iota
	Bash
	POSIX // any other sh
)

// Options says where and for which shell a command is read. The zero value reads a
// zsh command of which neither directory nor environment is known.
type Options struct {
	Dialect Dialect
	Dir     string // absolute directory the command starts in; "" is unknown
	Root    string // absolute workspace, for Lines
	// Env looks up the environment that the command will get. Nil: nothing of it is
	// known. A variable that it reports as unset, and that nothing in the text
	// assigns, counts as empty.
	Env func(name string) (string, bool)
	// UserHome looks up the home directory of a named user, for ~name.
	UserHome func(user string) (string, bool)

	MaxBytes int // longest text that is parsed, nested texts included; 0 is 65536
	MaxDepth int // deepest nesting that is followed; 0 is 64
	MaxSteps int // most commands and statements that are followed; 0 is 6000
}

// Reading is what a command would do, as far as its text shows.
type Reading struct {
	Commands   []Command // every program that would be started, wrappers included
	Writes     []Write   // files that would be written, changed or removed
	Reads      []string  // absolute names of files that input is redirected from
	Network    []Contact // programs that talk to the network
	Background []string  // programs started with &
	Detached   []string  // programs made to outlive the command
	ForkBombs  []string  // functions that start ever more copies of themselves
	Opaque     []Opaque  // parts that cannot be read
	Notes      []string  // what else a person should know, in plain words

	root, home string
}

// Command is one program with its arguments.
type Command struct {
	Program string // as the shell sees it, quotes and expansions done: "rm", "/bin/rm", "./git"
	Words   []Word // the program and its arguments
	Text    string // as written
	Dir     string // absolute directory it runs in; "" is unknown
	// OtherDirs are where it runs instead if a change of directory before it failed.
	OtherDirs []string
	Via       []string     // wrappers it runs through, outermost first
	Env       []Assignment // variables set for it in the text
	// Wrapper says that this program runs the command that follows in the list.
	Wrapper bool
	// Shadowed says that the text defines a function or alias of this name.
	Shadowed bool
	// Async says that it runs beside the rest: in the background or in a pipe.
	Async bool
	// Elsewhere names where it runs when that is not this machine's file tree, e.g.
	// "host web1" or "a container".
	Elsewhere string
	// Mounts are the directories of this machine that it sees Elsewhere.
	Mounts []Mount
}

// Mount is a directory of this machine under another name.
type Mount struct {
	Host   string // absolute path here
	Inside string // absolute path there
}

// Word is one argument, as far as it can be known.
type Word struct {
	Text  string // as written
	Value string // quotes removed and expansions done; a part only, unless Known
	Known bool   // Value is what the program gets, but for Pattern
	// Pattern is Value as a file name pattern, literal special characters escaped by
	// a backslash; "" when it is none.
	Pattern string
	Why     string // why it is not Known
}

// Assignment is a variable that is set for a command.
type Assignment struct {
	Name  string
	Value string
	Known bool
}

// Op is what happens to a file.
type Op uint8

// What happens to a file.
const (
	Overwrite Op = iota
	Append
	Remove
	Change // attributes, or contents in place
)

// Write is one file that would be written.
type Write struct {
	Path    string // absolute and clean; "" when it is not known
	Text    string // as written
	Pattern string // set when the name is a pattern
	Op      Op
	By      string // the program, or "redirection"
	// Aside says that it is written by an option of a program that otherwise reads.
	Aside     bool
	Elsewhere string
	Mounts    []Mount
}

// Contact is one program that talks to the network.
type Contact struct {
	Program string
	Host    string // as far as the text names one
}

// Opaque is a part of the text that cannot be read.
type Opaque struct {
	Text string
	Why  string
}
