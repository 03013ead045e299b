package mcp

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"zcoder/tools"
)

const (
	maxParts     = 500     // of one result
	maxImages    = 4       // of one result
	maxSorted    = 1 << 18 // bytes of a structured result that is put in order
	maxImageSize = 8 << 20 // bytes
)

// part is one piece of content, of a result, a resource or a prompt.
type part struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Data     string `json:"data"` // base64
	MimeType string `json:"mimeType"`
	URI      string `json:"uri"`
	Name     string `json:"name"`
	Resource *part  `json:"resource"`
	Blob     string `json:"blob"` // base64
}

// gathered is content made ready for the model.
type gathered struct {
	texts  []string
	images [][]byte
	vision bool
}

func (g *gathered) text() string { return strings.Join(g.texts, "\n") }

func (g *gathered) say(format string, args ...any) {
	g.texts = append(g.texts, fmt.Sprintf(format, args...))
}

// addAll adds the parts of a list, at most maxParts of them.
func (g *gathered) addAll(list json.RawMessage, add func(part)) error {
	more, err := eachElement(list, maxParts, func(one json.RawMessage) {
		var p part
		if err := json.Unmarshal(one, &p); err != nil {
			g.say("[a part that cannot be read, %d bytes, left out]", len(one))
			return
		}
		add(p)
	})
	if more > 0 {
		g.say("[%d more parts were left out]", more)
	}
	return err
}

func (g *gathered) add(p part) {
	switch {
	case p.Type == "text":
		g.texts = append(g.texts, strings.ToValidUTF8(p.Text, "\uFFFD"))
	case p.Type == "image":
		g.image(p.MimeType, p.Data)
	case p.Type == "resource_link":
		g.say("[resource %s: %s]", plain(p.Name, 100), plain(p.URI, 300))
	case p.Type == "resource" && p.Resource != nil:
		g.resource(*p.Resource)
	default:
		g.say("[%s, %s, left out]", plain(p.Type, 40), sizeOf(p.Data))
	}
}

// resource adds the content of a resource under its address.
func (g *gathered) resource(p part) {
	switch {
	case p.Blob == "":
		g.say("[%s]\n%s", plain(p.URI, 300), strings.ToValidUTF8(p.Text, "\uFFFD"))
	case strings.HasPrefix(p.MimeType, "image/"):
		g.say("[%s]", plain(p.URI, 300))
		g.image(p.MimeType, p.Blob)
	default:
		g.say("[%s: %s of %s, left out]", plain(p.URI, 300), sizeOf(p.Blob), plain(p.MimeType, 60))
	}
}

// image passes an image to a model that sees, and becomes a note for others.
func (g *gathered) image(kind, data string) {
	note := fmt.Sprintf("image, %s, %s", plain(kind, 40), sizeOf(data))
	if !g.vision || len(g.images) == maxImages || len(data) > maxImageSize*4/3 {
		g.say("[%s, left out: the model in use does not take it]", note)
		return
	}
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		g.say("[%s, damaged]", note)
		return
	}
	g.images = append(g.images, raw)
	g.say("[%s, attached]", note)
}

func sizeOf(data string) string {
	n := base64.StdEncoding.DecodedLen(len(data))
	if n < 10_000 {
		return fmt.Sprintf("%d bytes", n)
	}
	return fmt.Sprintf("%d kB", n/1000)
}

// result turns the result of a call, word for word from the server, into one for the
// model: all parts, bounded.
func (h *Hub) result(raw json.RawMessage) tools.Result {
	var r struct {
		Content    json.RawMessage `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
		IsError    bool            `json:"isError"`
		Type       string          `json:"resultType"`
	}
	g := &gathered{vision: h.o.Vision != nil && h.o.Vision()}
	err := json.Unmarshal(raw, &r)
	if err == nil {
		err = g.addAll(r.Content, g.add)
	}
	if err != nil {
		return tools.Fail("error: the server's result cannot be read (%v)", jsonError(err))
	}
	if r.Type == "input_required" {
		return tools.Fail("error: the server asks for more input, which zcoder does not give; call it with all that it needs")
	}
	if len(g.texts) == 0 && len(r.Structured) > 0 && string(r.Structured) != "null" {
		g.texts = append(g.texts, structured(r.Structured))
	}
	text := g.text()
	if text == "" {
		text = "(no output)"
	}
	res := tools.Result{Status: tools.OK, Text: h.bound(text), Images: g.images}
	res.Line = g.outcome(text)
	if r.IsError {
		res.Status, res.Line = tools.Failed, plain(firstLine(text), 80)
		res.Text = "error: " + res.Text
	}
	return res
}

// structured is a structured result as text.
func structured(raw json.RawMessage) string {
	if len(raw) <= maxSorted {
		raw = sorted(raw)
	}
	return strings.ToValidUTF8(string(raw), "\uFFFD")
}

func (g *gathered) outcome(text string) string {
	lines := strings.Count(text, "\n") + 1
	line := fmt.Sprintf("%d lines", lines)
	if lines == 1 {
		line = plain(text, 60)
	}
	if n := len(g.images); n > 0 {
		line += fmt.Sprintf(" · %d images", n)
	}
	return line
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// bound cuts a text that is too long; the whole of it is stored, so that a command
// can read it.
func (h *Hub) bound(text string) string {
	if h.o.MaxOutput <= 0 || len(text) <= h.o.MaxOutput || utf8.RuneCountInString(text) <= h.o.MaxOutput {
		return text
	}
	note := ""
	if h.o.Spill != nil {
		if path, err := h.o.Spill(text); err == nil {
			note = fmt.Sprintf("[cut to %d characters; all %d bytes are in %s until zcoder ends]\n", h.o.MaxOutput, len(text), path)
		} else {
			note = fmt.Sprintf("[cut to %d characters; the rest of the %d bytes is lost: %v]\n", h.o.MaxOutput, len(text), err)
		}
	}
	return note + tools.Cut(text, max(1, h.o.MaxOutput-len(note)-100))
}
