package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"zcoder/internal/approval"
	"zcoder/internal/event"
	"zcoder/internal/workspace"
	"zcoder/profiles"
)

// Bounds of what the mentions of one message attach.
const (
	maxMentions    = 20
	maxLookups     = 200      // places looked at for them
	maxMentioned   = 16 << 20 // bytes of a file that is read
	maxImage       = 10 << 20 // bytes
	maxImages      = 4
	maxListed      = 200 // entries of a directory
	mentionedShare = 1   // characters a message may attach, for each token of the window
)

// pipedMark stands before what came over a pipe: text of others, in which a mention
// attaches nothing.
const pipedMark = "\n\nInput from stdin:\n"

// mention is a place that a message names with @.
type mention struct {
	path        workspace.Path
	written     string // without the @ and the range
	first, last int    // lines, 0: all
}

// attachment is what a mention adds for the model, and a word on it for the person.
type attachment struct {
	head, text string // head is one line
	note       string
	unit       string
}

// expander completes the inputs of a conversation: `$skill` at the start, and what
// @mentions name. The text itself stays as it was typed.
func (w *workbench) expander(c *conversation) func(context.Context, event.Input) event.Input {
	return func(ctx context.Context, in event.Input) event.Input {
		if in.Peer != nil {
			return in // the text of another agent is data
		}
		in.Before = append(in.Before, w.activateNamed(c, in.Text)...)
		typed, _, _ := strings.Cut(in.Text, pipedMark)
		list, refused := w.mentions(typed)
		for _, why := range refused {
			in.Before = append(in.Before, event.Event{Kind: event.Warning, Text: why})
		}
		return w.attach(ctx, in, list)
	}
}

// attach adds what the mentions name to the input.
func (w *workbench) attach(ctx context.Context, in event.Input, list []mention) event.Input {
	var parts []attachment
	for _, a := range in.Attached {
		parts = append(parts, handedOver(a))
	}
	for _, m := range list {
		if isImage(m.path.Rel()) {
			in = w.attachImage(ctx, in, m)
			continue
		}
		part, err := w.attachment(m)
		if err != nil {
			in.Before = append(in.Before, event.Event{Kind: event.Warning, Text: fmt.Sprintf("@%s was not attached: %v", m.written, err)})
			continue
		}
		parts = append(parts, part)
	}
	sizes := make([]int, len(parts))
	for i, p := range parts {
		sizes[i] = utf8.RuneCountInString(p.text)
	}
	budget := w.attachBudget()
	var told []string
	for i, n := range profiles.Shares(sizes, budget) {
		p := parts[i]
		if n < sizes[i] {
			p.text = cutLines(p.text, n, p.unit)
			p.note += fmt.Sprintf(", cut: all attachments together may have %d characters", budget)
		}
		in.Before = append(in.Before, event.Event{Kind: event.Note, Text: p.head + "\n" + p.text})
		told = append(told, p.note)
	}
	if len(told) > 0 {
		in.Before = append(in.Before, event.Event{Kind: event.Info, Text: "attached " + strings.Join(told, "; ")})
	}
	return in
}

// attachBudget is how many characters one message may attach: no more than a tool
// result, and a quarter of a window that is known.
func (w *workbench) attachBudget() int {
	budget := w.v.Int("max-tool-output")
	if tokens := w.brain.windowInUse(); tokens > 0 {
		budget = min(budget, tokens*mentionedShare)
	}
	return budget
}

// windowInUse is the window of the model in tokens, or 0 when it is not known yet.
func (b *brain) windowInUse() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.window[b.model].Tokens
}

// cutLines keeps the first n characters of a text, up to a line's end, and says so.
func cutLines(text string, n int, unit string) string {
	const reserve = 100 // for the last line
	if n < reserve {
		return "[no room for it]"
	}
	kept := string([]rune(text)[:n-reserve])
	if i := strings.LastIndexByte(kept, '\n'); i >= 0 {
		kept = kept[:i+1]
	}
	return fmt.Sprintf("%s[cut here: %d of %d %s; read the rest with a tool if you need it]", kept, strings.Count(kept, "\n"), strings.Count(strings.TrimSuffix(text, "\n"), "\n")+1, unit)
}

var (
	lineRange = regexp.MustCompile(`^(.+):(\d{1,9})(?:-(\d{1,9}))?$`)
	// beforeMention may stand before an @ that names a place.
	beforeMention = "([{<\"'`,;:=|"
)

// mentions finds the places that a text names, each once, and says which are refused.
// An @word that is no place of the workspace is a word.
func (w *workbench) mentions(text string) (list []mention, refused []string) {
	seen := map[string]bool{}
	lookups := 0
	for i := 0; i < len(text) && len(list) < maxMentions && lookups < maxLookups; i++ {
		if text[i] != '@' {
			continue
		}
		if before, _ := utf8.DecodeLastRuneInString(text[:i]); i > 0 && !unicode.IsSpace(before) && !strings.ContainsRune(beforeMention, before) {
			continue
		}
		for _, candidate := range candidates(text[i+1:]) {
			lookups++
			m, found, err := w.lookup(candidate)
			if err != nil {
				refused = append(refused, fmt.Sprintf("@%s was not attached: %v", candidate, err))
			}
			if !found && err == nil {
				continue
			}
			if key := fmt.Sprint(m.path.Rel(), m.first, m.last); found && !seen[key] {
				seen[key] = true
				list = append(list, m)
			}
			break
		}
	}
	return list, refused
}

// candidates are the readings of what stands behind an @: the quoted text, else the
// word, then the same with the words that follow, since names can hold blanks; each
// also without the punctuation behind it.
func candidates(text string) []string {
	if strings.HasPrefix(text, `"`) {
		quoted, _, closed := strings.Cut(text[1:], `"`)
		if closed && quoted != "" && !strings.Contains(quoted, "\n") {
			return []string{quoted}
		}
		return nil
	}
	line, _, _ := strings.Cut(text, "\n")
	end := strings.IndexFunc(line, unicode.IsSpace)
	if end < 0 {
		end = len(line)
	}
	word := line[:end]
	if word == "" || word[0] == '@' {
		return nil
	}
	list := trimmed(nil, word)
	const moreWords = 4
	for range moreWords {
		rest := strings.TrimLeft(line[end:], " ")
		if rest == "" || rest == line[end:] {
			break
		}
		next := strings.IndexFunc(rest, unicode.IsSpace)
		if next < 0 {
			next = len(rest)
		}
		end = len(line) - len(rest) + next
		list = trimmed(list, line[:end])
	}
	return list
}

// trimmed appends text, and what is left of it without the punctuation at its end,
// sign by sign.
func trimmed(list []string, text string) []string {
	for {
		list = append(list, text)
		last := len(text) - 1
		if last < 1 || !strings.ContainsRune(".,;:!?)]}>'\"`*", rune(text[last])) {
			return list
		}
		text = text[:last]
	}
}

// lookup resolves one reading. The error says why a place that is there is not
// attached; found is false for what is no place.
func (w *workbench) lookup(text string) (m mention, found bool, err error) {
	m = mention{written: text}
	m.path, found, err = w.place(text)
	if found || err != nil {
		return m, found, err
	}
	parts := lineRange.FindStringSubmatch(text)
	if parts == nil {
		return m, false, nil
	}
	if m.path, found, err = w.place(parts[1]); !found || err != nil {
		return m, found, err
	}
	m.written = parts[1]
	m.first, _ = strconv.Atoi(parts[2]) // digits
	m.last = m.first
	if parts[3] != "" {
		m.last, _ = strconv.Atoi(parts[3])
	}
	if m.first < 1 || m.last < m.first || m.path.Info().IsDir() {
		return m, false, fmt.Errorf("the lines %d to %d are no range", m.first, m.last)
	}
	return m, true, nil
}

// place resolves a path by the rules of the reading tools. What those would ask about
// is refused here: nobody was shown it.
func (w *workbench) place(text string) (workspace.Path, bool, error) {
	p, err := w.ws.Resolve(text)
	switch {
	case err != nil && !strings.Contains(text, ":/") && (text[0] != '~' || strings.HasPrefix(text, "~/")):
		return p, false, err // it leads away, or through what is no directory
	case err != nil || !p.Exists():
		return p, false, nil
	case !p.Info().IsDir() && !p.Info().Mode().IsRegular():
		return p, false, errors.New("it is not a regular file")
	}
	if err := w.mayRead(p); err != nil {
		return p, false, err
	}
	return p, true, nil
}

// mayRead applies the rules that the reading tools are judged by.
func (w *workbench) mayRead(p workspace.Path) error {
	summary := "read_file " + quoted(p.Rel())
	v := w.policy.Judge(approval.Request{
		Tool: "read_file", Effect: approval.Read, Origin: approval.OriginUser, Summary: summary, Text: summary,
		Paths: []approval.PathUse{{Path: p.Abs(), Rel: p.Rel()}}, MustAsk: p.ReadReasons(),
	})
	switch v.Decision {
	case approval.Allow:
		return nil
	case approval.Deny:
		return fmt.Errorf("%s (%s)", v.Reason, v.Rule)
	}
	return fmt.Errorf("%s; the model can ask for it with read_file, which asks you", v.Reason)
}

// attachment reads a file, some of its lines, or the names in a directory.
func (w *workbench) attachment(m mention) (attachment, error) {
	if m.path.Info().IsDir() {
		return w.attachDir(m)
	}
	content, _, err := w.ws.Read(m.path, maxMentioned)
	if errors.Is(err, workspace.ErrTooLarge) {
		return attachment{}, fmt.Errorf("it has %d bytes, at most %d are read; the model can search in it", m.path.Info().Size(), maxMentioned)
	}
	if err != nil {
		return attachment{}, err
	}
	if bytes.IndexByte(content, 0) >= 0 || !utf8.Valid(content) {
		return attachment{}, fmt.Errorf("it is no text (%d bytes)", len(content))
	}
	name, text := quoted(m.path.Rel()), string(content)
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if text == "" {
		lines = nil
	}
	if m.first == 0 {
		return attachment{
			head: fmt.Sprintf("The user attached the file %s (%s):", name, plural(len(lines), "line", "lines")), text: text,
			note: fmt.Sprintf("%s (%s)", name, plural(len(lines), "line", "lines")), unit: "lines",
		}, nil
	}
	if m.first > len(lines) {
		return attachment{}, fmt.Errorf("it has %s, so it has no line %d", plural(len(lines), "line", "lines"), m.first)
	}
	m.last = min(m.last, len(lines))
	var b strings.Builder
	for i, line := range lines[m.first-1 : m.last] {
		fmt.Fprintf(&b, "%d: %s\n", m.first+i, line)
	}
	return attachment{
		head: fmt.Sprintf("The user attached the lines %d-%d of the file %s, which has %d:", m.first, m.last, name, len(lines)), text: b.String(),
		note: fmt.Sprintf("%s (lines %d-%d)", name, m.first, m.last), unit: "lines",
	}, nil
}

// handedOver is a text that came with the input itself.
func handedOver(a event.Attachment) attachment {
	name, lines := quoted(a.Name), strings.Count(strings.TrimSuffix(a.Text, "\n"), "\n")+1
	return attachment{
		head: fmt.Sprintf("The user attached %s (%s), as the editor has it; on disk it may differ:", name, plural(lines, "line", "lines")), text: a.Text,
		note: fmt.Sprintf("%s (%s)", name, plural(lines, "line", "lines")), unit: "lines",
	}
}

func (w *workbench) attachDir(m mention) (attachment, error) {
	entries, err := w.ws.ReadDir(m.path)
	if err != nil {
		return attachment{}, err
	}
	var b strings.Builder
	n := 0
	for _, e := range entries {
		if workspace.Protected(path.Join(m.path.Rel(), e.Name())) {
			continue
		}
		if n++; n > maxListed {
			continue
		}
		name := quoted(e.Name())
		if e.IsDir() {
			name = quoted(e.Name() + "/")
		}
		b.WriteString(name + "\n")
	}
	if n > maxListed {
		fmt.Fprintf(&b, "[the first %d of %d entries]\n", maxListed, n)
	}
	name := quoted(m.path.Rel())
	count := plural(n, "entry", "entries")
	return attachment{
		head: fmt.Sprintf("The user attached the directory %s (%s):", name, count), text: b.String(),
		note: fmt.Sprintf("%s (directory, %s)", name, count), unit: "entries",
	}, nil
}

// quoted is a name as one word of a line: quoted when it holds something that would
// not be seen for what it is.
func quoted(name string) string {
	odd := func(r rune) bool {
		return !unicode.IsPrint(r) || unicode.In(r, unicode.Cf, unicode.Mn) || r == '"' || r == '\\'
	}
	if strings.ContainsFunc(name, odd) || strings.TrimSpace(name) != name {
		return strconv.QuoteToASCII(name)
	}
	return name
}

// isImage reports whether a name is that of an image.
func isImage(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".png", ".jpg", ".jpeg", ".gif", ".webp":
		return true
	}
	return false
}

// attachImage adds an image for a model that can see, else a note.
func (w *workbench) attachImage(ctx context.Context, in event.Input, m mention) event.Input {
	name := quoted(m.path.Rel())
	say := func(kind event.Kind, format string, args ...any) {
		in.Before = append(in.Before, event.Event{Kind: kind, Text: fmt.Sprintf(format, args...)})
	}
	facts, err := w.brain.known(ctx)
	if err != nil || !facts.Vision {
		say(event.Warning, "@%s was not attached: the model %s cannot see images; /model shows which ones can", m.written, w.model())
		say(event.Note, "The user mentions the image %s. This model cannot see images.", name)
		return in
	}
	if len(in.Images) >= maxImages {
		say(event.Warning, "@%s was not attached: one message takes %d images", m.written, maxImages)
		return in
	}
	content, _, err := w.ws.Read(m.path, maxImage)
	switch {
	case errors.Is(err, workspace.ErrTooLarge):
		say(event.Warning, "@%s was not attached: it has %d bytes, at most %d are sent", m.written, m.path.Info().Size(), maxImage)
	case err != nil:
		say(event.Warning, "@%s was not attached: %v", m.written, err)
	case !looksLikeImage(content):
		say(event.Warning, "@%s was not attached: it is no image (%d bytes)", m.written, len(content))
	default:
		in.Images = append(in.Images, content)
		say(event.Note, "The user attached the image %s, number %d of the next message.", name, len(in.Images))
		say(event.Info, "attached the image %s (%s)", name, size(int64(len(content))))
	}
	return in
}

// looksLikeImage knows the beginnings of PNG, JPEG, GIF and WebP.
func looksLikeImage(b []byte) bool {
	return bytes.HasPrefix(b, []byte("\x89PNG\r\n\x1a\n")) || bytes.HasPrefix(b, []byte("\xff\xd8\xff")) ||
		bytes.HasPrefix(b, []byte("GIF8")) || len(b) > 12 && bytes.HasPrefix(b, []byte("RIFF")) && bytes.Equal(b[8:12], []byte("WEBP"))
}
