package manual

import (
	"fmt"
	"strings"
)

// Page is a page for man.
type Page struct {
	Name    string // of the program
	Version string
	Summary string // one line
	Parts   []Part
}

// Part is a section of a page, or a part of one.
type Part struct {
	Title   string
	Sub     bool    // stands below the section before it
	Text    string  // Markdown; may be empty
	Entries []Entry // stand behind Text
}

// Entry is a name and what it means, both plain text.
type Entry struct{ Name, Meaning string }

// Roff returns the page in section 1 of the manual. It has no date, so that it is the
// same whenever it is made.
func (p Page) Roff() string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"%s\" \"\"\n", strings.ToUpper(p.Name), escape(p.Name+" "+p.Version))
	b.WriteString(".nh\n.ad l\n") // commands are not hyphenated
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", escape(p.Name), escape(p.Summary))
	for _, part := range p.Parts {
		macro := ".SH"
		if part.Sub {
			macro = ".SS"
		}
		fmt.Fprintf(&b, "%s %s\n", macro, quoted(part.Title))
		b.WriteString(roff(part.Text))
		for _, e := range part.Entries {
			entry(&b, bold(e.Name), escape(e.Meaning))
		}
	}
	return b.String()
}

// roff renders Markdown; its headings stand below the section that it is put in.
func roff(markdown string) string {
	var b strings.Builder
	begins := true // what stands here needs no mark of a paragraph
	for _, block := range parse(markdown) {
		first := begins
		begins = block.kind == heading
		switch block.kind {
		case heading:
			fmt.Fprintf(&b, ".SS %s\n", quoted(flat(block.text)))
		case paragraph:
			if !first {
				b.WriteString(".PP\n")
			}
			b.WriteString(line(set(block.text)))
		case item:
			fmt.Fprintf(&b, ".IP %s 3\n%s", quoted(block.mark), line(set(block.text)))
		case code:
			b.WriteString(".PP\n.RS 4\n.nf\n")
			for _, text := range block.lines {
				b.WriteString(line(escape(text)))
			}
			b.WriteString(".fi\n.RE\n")
		case table:
			for _, row := range block.rows[1:] {
				meaning := make([]string, 0, len(row))
				for _, cell := range row[1:] {
					if cell != "" {
						meaning = append(meaning, set(cell))
					}
				}
				entry(&b, set(row[0]), strings.Join(meaning, "; "))
			}
		}
	}
	return b.String()
}

// entry writes a name and its meaning, both as roff.
func entry(b *strings.Builder, name, meaning string) {
	b.WriteString(".TP\n" + line(name) + line(meaning))
}

// set is a line of Markdown as roff.
func set(text string) string {
	var b strings.Builder
	for _, s := range spans(text) {
		switch s.kind {
		case literal, strong:
			b.WriteString(bold(s.text))
		case stressed:
			b.WriteString(`\fI` + escape(s.text) + `\fR`)
		default:
			b.WriteString(escape(s.text))
		}
	}
	return b.String()
}

func bold(text string) string { return `\fB` + escape(text) + `\fR` }

// line makes text a line of input that no request can be taken for.
func line(text string) string {
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") || text == "" {
		text = `\&` + text
	}
	return text + "\n"
}

// quoted is text as one argument of a request.
func quoted(text string) string { return `"` + strings.ReplaceAll(escape(text), `"`, `\(dq`) + `"` }

// escape makes characters stand for themselves that roff would act on or replace.
func escape(text string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`, "\n", " ").Replace(text)
}
