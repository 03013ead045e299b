package repl

import (
	"strings"
	"time"

	"zcoder/internal/termtext"
)

// maxCandidates is how many completions are listed.
const maxCandidates = 60

// complete is Tab: it completes command names, their arguments, and @paths before
// the cursor. Whatever may block runs outside the loop.
func (c *console) complete() {
	if c.asking != nil {
		return
	}
	before := c.ed.cells.text(c.ed.line[:c.ed.pos])
	word := before[strings.LastIndexAny(before, " \t\n")+1:]
	name, _ := splitCommand(before)
	switch {
	case strings.HasPrefix(word, "@") && c.o.Paths != nil:
		c.completeWith(word[1:], func() []string { return c.o.Paths(word[1:]) })
	case isCommand(before) && before[0] == '/' && word == before:
		c.completed(name, c.commandNames())
	case isCommand(before) && before[0] == '/':
		k, ok := c.lookup(name)
		if ok && k.Complete != nil {
			args := strings.TrimLeft(before[len(name)+1:], " \t")
			c.completeWith(args, func() []string { return k.Complete(args) })
		}
	}
}

func (c *console) commandNames() []string {
	var names []string
	for _, k := range c.commands() {
		names = append(names, k.Name)
	}
	return names
}

// completeWait is how long keys wait for completions; later ones still count if the
// draft is unchanged.
const completeWait = 100 * time.Millisecond

// completeWith asks for candidates outside the loop.
func (c *console) completeWith(prefix string, candidates func() []string) {
	text, pos := c.ed.text(), c.ed.pos
	got := make(chan []string, 1)
	late := make(chan struct{})
	c.spawn(func() {
		list := candidates()
		got <- list
		select {
		case <-late:
		case <-c.ctx.Done():
			return
		}
		c.post(func() {
			select {
			case list := <-got:
				if c.ed.text() == text && c.ed.pos == pos && c.asking == nil && c.dialog == nil {
					c.completed(prefix, list)
				}
			default:
			}
		})
	})
	defer close(late)
	over := make(chan struct{})
	defer c.o.AfterFunc(completeWait, func() { close(over) })()
	select {
	case list := <-got:
		c.completed(prefix, list)
	case <-over:
	}
}

// completed inserts what the candidates have in common, or lists them.
func (c *console) completed(prefix string, candidates []string) {
	var fit []string
	for _, candidate := range candidates {
		if strings.HasPrefix(candidate, prefix) {
			fit = append(fit, candidate)
		}
	}
	if len(fit) == 0 {
		c.hint = "nothing to complete"
		return
	}
	rest := commonPrefix(fit)[len(prefix):]
	switch {
	case len(fit) == 1 && !strings.HasSuffix(fit[0], "/"):
		c.ed.insert(rest + " ")
	case rest != "":
		c.ed.insert(rest)
	case len(fit) > 1:
		c.listCandidates(fit)
	}
}

func commonPrefix(list []string) string {
	common := list[0]
	for _, s := range list[1:] {
		n := 0
		for n < len(common) && n < len(s) && common[n] == s[n] {
			n++
		}
		common = common[:cutBefore(common, n)]
	}
	return common
}

// listCandidates prints the candidates in columns.
func (c *console) listCandidates(list []string) {
	more := ""
	if len(list) > maxCandidates {
		more = plural(len(list)-maxCandidates, "more candidate")
		list = list[:maxCandidates]
	}
	cols, _ := c.t.size()
	width := 0
	safe := make([]string, len(list))
	for i, s := range list {
		safe[i] = termtext.Cut(termtext.Line(s), max(cols-3, 1))
		width = max(width, termtext.Width(safe[i])+2)
	}
	perRow := max(1, (cols-1)/width)
	var b strings.Builder
	for i, s := range safe {
		if (i+1)%perRow == 0 || i == len(safe)-1 {
			b.WriteString(s + "\n")
		} else {
			b.WriteString(pad(s, width))
		}
	}
	c.tr.note(b.String() + more)
}
