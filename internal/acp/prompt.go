package acp

import (
	"encoding/base64"
	"fmt"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	sdk "github.com/coder/acp-go-sdk"

	"zcoder/internal/event"
)

// Bounds of one prompt.
const (
	maxBlocks   = 200
	maxText     = 1 << 20 // bytes, all text together
	maxImage    = 7 << 20 // bytes of one image
	maxImages   = 4
	maxAttached = 20 // texts that are embedded
)

// readPrompt makes an input of the blocks of a prompt. Files that it links to and that
// lie in the workspace become mentions, which are attached like any other; embedded
// texts are attached as they are. roots are the names that the workspace goes by.
func readPrompt(blocks []sdk.ContentBlock, roots ...string) (event.Input, error) {
	if len(blocks) > maxBlocks {
		return event.Input{}, invalid("the prompt has %d blocks, %d are possible", len(blocks), maxBlocks)
	}
	r := promptReader{roots: roots}
	for _, b := range blocks {
		if err := r.block(b); err != nil {
			return event.Input{}, err
		}
		if r.text.Len()+r.attached > maxText {
			return event.Input{}, invalid("the prompt has more than %d bytes of text", maxText)
		}
	}
	r.in.Text = r.text.String()
	if strings.TrimSpace(r.in.Text) == "" && len(r.in.Images) == 0 {
		return event.Input{}, invalid("the prompt is empty")
	}
	return r.in, nil
}

type promptReader struct {
	roots    []string
	in       event.Input
	text     strings.Builder
	word     bool // the text ends with something that stands for a file
	attached int  // bytes
}

func (r *promptReader) block(b sdk.ContentBlock) error {
	switch {
	case b.Text != nil:
		r.plain(b.Text.Text)
	case b.ResourceLink != nil:
		r.link(b.ResourceLink.Uri, b.ResourceLink.Name)
	case b.Resource != nil && b.Resource.Resource.TextResourceContents != nil:
		return r.embed(*b.Resource.Resource.TextResourceContents)
	case b.Resource != nil && b.Resource.Resource.BlobResourceContents != nil:
		blob := b.Resource.Resource.BlobResourceContents
		if blob.MimeType == nil || !strings.HasPrefix(*blob.MimeType, "image/") {
			return invalid("the resource %q is neither text nor an image", blob.Uri)
		}
		return r.image(blob.Blob)
	case b.Image != nil:
		return r.image(b.Image.Data)
	default:
		return invalid("the prompt holds a block that is not supported; text, links, embedded resources and images are")
	}
	return nil
}

// plain adds text as it is, on a line of its own after other text.
func (r *promptReader) plain(text string) {
	if r.text.Len() > 0 && !r.word && text != "" {
		r.text.WriteString("\n\n")
	}
	if first, _ := utf8.DecodeRuneInString(text); r.word && text != "" && (unicode.IsLetter(first) || unicode.IsNumber(first)) {
		r.text.WriteByte(' ')
	}
	r.text.WriteString(text)
	r.word = false
}

// name adds what stands for a file, as a word of its own.
func (r *promptReader) name(text string) {
	if last, _ := utf8.DecodeLastRuneInString(r.text.String()); r.text.Len() > 0 && !unicode.IsSpace(last) && !strings.ContainsRune("([{<", last) {
		r.text.WriteByte(' ')
	}
	r.text.WriteString(text)
	r.word = true
}

// link adds a link: as a mention when it leads into the workspace, else as it stands.
func (r *promptReader) link(uri, name string) {
	rel, lines, ok := r.inside(uri)
	if ok && !strings.ContainsAny(rel, "\"\n\r") {
		r.name(`@"` + rel + lines + `"`)
		return
	}
	if name != "" && name != uri {
		uri = name + " (" + uri + ")"
	}
	r.name("[" + strings.Map(onLine, uri) + "]")
}

func onLine(r rune) rune {
	if unicode.IsControl(r) {
		return ' '
	}
	return r
}

var lineFragment = regexp.MustCompile(`^L(\d{1,9})(?:[-:]L?(\d{1,9}))?$`)

// inside returns the path of a file URI below the workspace, and ":FIRST-LAST" when it
// names lines.
func (r *promptReader) inside(uri string) (rel, lines string, ok bool) {
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "file" || u.Host != "" && u.Host != "localhost" || !path.IsAbs(u.Path) || strings.ContainsRune(u.Path, 0) {
		return "", "", false
	}
	if m := lineFragment.FindStringSubmatch(u.Fragment); m != nil {
		lines = ":" + m[1]
		if m[2] != "" {
			lines += "-" + m[2]
		}
	}
	for _, root := range r.roots {
		rel, err := filepath.Rel(root, path.Clean(u.Path))
		if err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
			return rel, lines, true
		}
	}
	return "", "", false
}

// embed attaches a text. What stands for it among the words is its name.
func (r *promptReader) embed(c sdk.TextResourceContents) error {
	if len(r.in.Attached) == maxAttached {
		return invalid("the prompt embeds more than %d resources", maxAttached)
	}
	name := c.Uri
	if rel, lines, ok := r.inside(c.Uri); ok {
		name = rel + lines
	}
	name = strings.Map(onLine, name)
	r.attached += len(c.Text)
	r.in.Attached = append(r.in.Attached, event.Attachment{Name: name, Text: strings.ToValidUTF8(c.Text, "\uFFFD")})
	r.name("[" + name + "]")
	return nil
}

func (r *promptReader) image(data string) error {
	if len(r.in.Images) == maxImages {
		return invalid("the prompt has more than %d images", maxImages)
	}
	if len(data) > base64.StdEncoding.EncodedLen(maxImage) {
		return invalid("an image has more than %d bytes", maxImage)
	}
	image, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return invalid("an image is not base64: %v", err)
	}
	r.in.Images = append(r.in.Images, image)
	r.name(fmt.Sprintf("[image %d]", len(r.in.Images)))
	return nil
}
