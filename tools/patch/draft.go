package patch

// draft is a section while its headers are read.
type draft struct {
	section
	envelope bool // of a "*** Begin Patch" envelope: the name is certain

	gitOld, gitNew string // of the "diff --git" line, when git
	git            bool
	old, new       string // of "---" and "+++", when named
	named          bool
	from           string // of "rename from" or "copy from"
	created        bool   // "new file mode"
	deleted        bool   // "deleted file mode"
}

// setMode takes a mode as git writes it.
func (d *draft) setMode(word, mode string) error {
	switch mode {
	case "100644", "100755":
	case "120000":
		return reject("line %d makes or changes a symbolic link (mode 120000); patches change regular files only.", d.line)
	case "160000":
		return reject("line %d makes or changes a submodule (mode 160000); patches change regular files only.", d.line)
	default:
		return reject("line %d sets mode %s; only 100644 and 100755 are possible.", d.line, mode)
	}
	switch word {
	case "new file mode":
		d.created = true
	case "deleted file mode":
		d.deleted = true
	}
	if word == "new mode" || word == "new file mode" {
		d.exec = execOff
		if mode == "100755" {
			d.exec = execOn
		}
	}
	return nil
}

func (d *draft) setMove(word, name string) error {
	if quoted, ok := unquote(name); ok {
		name = quoted
	}
	switch word {
	case "rename from", "copy from":
		d.from = name
	default:
		d.to = name
	}
	d.keep = word == "copy from" || word == "copy to"
	return nil
}

// finish decides what the section does and checks that its parts agree.
func (d *draft) finish() (section, error) {
	if !d.envelope {
		if err := d.decide(); err != nil {
			return section{}, err
		}
	}
	for i := range d.hunks {
		if err := d.checkHunk(i); err != nil {
			return section{}, err
		}
	}
	switch {
	case d.op == update && len(d.hunks) == 0 && d.to == "" && d.exec == execKept:
		return section{}, reject("%q (line %d) has no hunk, so the patch changes nothing in it.", d.name, d.line)
	case d.op == create && len(d.hunks) == 0 && !d.envelope && !d.created:
		return section{}, reject("the new file %q (line %d) has no hunk.", d.name, d.line)
	case d.op == create && len(d.hunks) > 1:
		return section{}, reject("the new file %q (line %d) has %d hunks; give its whole content in one.", d.name, d.line, len(d.hunks))
	case d.op == remove && d.whole && len(d.hunks) > 0:
		return section{}, reject("%q (line %d) is deleted, so no hunk belongs to it.", d.name, d.line)
	}
	return d.section, nil
}

// decide reads the names and the operation from the headers of a unified diff.
func (d *draft) decide() error {
	if (d.from == "") != (d.to == "") {
		return reject("line %d: a rename needs both \"rename from OLD\" and \"rename to NEW\".", d.line)
	}
	old, name, known := d.old, d.new, d.named
	if !known {
		old, name, known = d.gitOld, d.gitNew, d.git
	}
	if d.from != "" {
		return d.decideMove(old, name, known)
	}
	if !known {
		return reject("line %d names no file: \"--- a/FILE\" and \"+++ b/FILE\" must follow.", d.line)
	}
	one, other, ok := pairName(old, name)
	if !ok || old == devNull && name == devNull {
		return reject("line %d names two files, %q and %q; a rename needs the lines \"rename from OLD\" and \"rename to NEW\".", d.line, old, name)
	}
	if d.git && d.named {
		if fromGit, _, ok := pairName(d.gitOld, d.gitNew); ok && fromGit != one && fromGit != other {
			return reject("line %d: \"diff --git\" names %q, the lines below it %q.", d.line, fromGit, one)
		}
	}
	if d.git {
		other = ""
	}
	if one == "" {
		return reject("line %d names no file.", d.line)
	}
	d.name, d.other = one, other
	created, deleted := d.created || old == devNull, d.deleted || name == devNull
	switch {
	case created && deleted:
		return reject("%q (line %d) is both created and deleted.", one, d.line)
	case created:
		d.op = create
	case deleted:
		d.op = remove
	}
	return nil
}

func (d *draft) decideMove(old, name string, known bool) error {
	shortOld, _ := cutPrefix(old)
	shortNew, _ := cutPrefix(name)
	if known && (old != d.from && shortOld != d.from || name != d.to && shortNew != d.to) {
		return reject("line %d: the rename is from %q to %q, but the header names %q and %q.", d.line, d.from, d.to, old, name)
	}
	if d.created || d.deleted {
		return reject("%q (line %d) is renamed, so it is neither created nor deleted.", d.from, d.line)
	}
	d.name = d.from
	return nil
}

// checkHunk refuses hunks that contradict themselves or the operation.
func (d *draft) checkHunk(i int) error {
	h := &d.hunks[i]
	if d.op == create {
		return d.checkNew(h)
	}
	if h.count(' ') == len(h.lines) {
		return reject("hunk %d of %q (line %d) changes nothing: no line begins with \"-\" or \"+\".", i+1, d.name, h.line)
	}
	return d.checkBare(h, i)
}

// checkNew takes the lines of a new file.
func (d *draft) checkNew(h *hunk) error {
	h.lines, h.soft = h.lines[:len(h.lines)-h.soft], 0
	if len(h.lines) == 0 {
		return reject("the hunk at line %d has no lines.", h.line)
	}
	for i := range h.lines {
		l := &h.lines[i]
		if l.mark == ' ' && l.text == "" {
			l.mark = '+'
		}
		if l.mark != '+' {
			return reject("%q (line %d) is a new file, so each of its lines begins with \"+\"; %s does not.", d.name, d.line, show(string(l.mark)+l.text))
		}
	}
	return d.checkBare(h, 0)
}

// checkBare holds "\ No newline" to the last line of each side.
func (d *draft) checkBare(h *hunk, i int) error {
	lastOld, lastNew := -1, -1
	for j, l := range h.lines {
		if l.mark != '+' {
			lastOld = j
		}
		if l.mark != '-' {
			lastNew = j
		}
	}
	for j, l := range h.lines {
		if l.bare && (l.mark != '+' && j != lastOld || l.mark != '-' && j != lastNew) {
			return reject("hunk %d of %q (line %d): \"\\ No newline at end of file\" stands below a line that is not the last one.", i+1, d.name, h.line)
		}
	}
	return nil
}
