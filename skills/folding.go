package skills

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// skeleton folds text so that look-alikes compare equal: compatibility forms, letter
// case, accents, characters that draw nothing, letters of other scripts that look like
// Latin ones. What is neither letter nor digit becomes one blank.
func skeleton(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	blank := true
	put := func(r rune) {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			b.WriteRune(r)
			blank = false
		} else if !blank {
			b.WriteByte(' ')
			blank = true
		}
	}
	if isASCII(text) {
		for _, r := range text {
			put(unicode.ToLower(r))
		}
		return strings.TrimRight(b.String(), " ")
	}
	for _, r := range norm.NFKD.String(strings.Map(visible, apart(text))) {
		if r < utf8.RuneSelf || !unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
			put(latin(unicode.ToLower(r)))
		}
	}
	return strings.TrimRight(b.String(), " ")
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// apart puts a blank before and behind each run of tag characters, which are a hidden
// text of its own.
func apart(text string) string {
	if !strings.ContainsFunc(text, isTag) {
		return text
	}
	var b strings.Builder
	in := false
	for _, r := range text {
		if isTag(r) != in {
			b.WriteByte(' ')
			in = !in
		}
		b.WriteRune(r)
	}
	return b.String()
}

func isTag(r rune) bool { return r >= 0xE0020 && r <= 0xE007E }

// visible turns characters that hide a letter into it, and drops those that draw
// nothing.
func visible(r rune) rune {
	switch {
	case r < utf8.RuneSelf:
		return r
	case r == utf8.RuneError:
		return ' '
	case isTag(r): // a hidden copy of ASCII
		return r - 0xE0000
	case r >= 0x1F1E6 && r <= 0x1F1FF: // regional indicators
		return 'a' + r - 0x1F1E6
	case r >= 0x1F150 && r <= 0x1F169: // negative circled letters
		return 'a' + r - 0x1F150
	case r >= 0x1F170 && r <= 0x1F189: // negative squared letters
		return 'a' + r - 0x1F170
	case unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point):
		return -1
	}
	return r
}

// latin returns the ASCII letter or digit that a lower-case rune looks like, or the
// rune.
func latin(r rune) rune {
	if r < utf8.RuneSelf {
		return r
	}
	if ascii, ok := lookAlikes[r]; ok {
		return ascii
	}
	return r
}

// lookAlikes maps letters of other scripts and odd Latin ones to what they look like.
// It never changes.
var lookAlikes = func() map[rune]rune {
	m := map[rune]rune{}
	for ascii, list := range map[rune]string{
		'a': "аɑαᴀ∂ªⱥ", 'b': "ьъвƅʙɓḃ", 'c': "сϲᴄƈⅽς", 'd': "ԁɗᴅđժ", 'e': "еєɛεᴇҽ℮ə", 'f': "ƒꜰϝғ", 'g': "ɡɢցğǵ",
		'h': "һнհʜħ", 'i': "іıιɩɪїӏᎥ¡", 'j': "јϳʝᴊյ", 'k': "кκᴋƙқ", 'l': "ⅼʟɭłǀ∣ⵏ", 'm': "мᴍⅿ", 'n': "пɴոηռи",
		'o': "оοօσᴏøɔ०ⲟ", 'p': "рρᴘƿք", 'q': "ԛգʠ", 'r': "гᴦʀɾг", 's': "ѕꜱʂƽ", 't': "тτᴛƭŧ", 'u': "υսᴜцʋ", 'v': "ѵνᴠⅴט",
		'w': "ѡԝωᴡɯш", 'x': "хχⅹ×ҳ", 'y': "уүγʏყ", 'z': "ᴢʐƶʑ",
	} {
		for _, r := range list {
			m[r] = ascii
		}
	}
	return m
}()

// leet reads digits between letters as the letters they stand for.
func leet(s string) string {
	b := []byte(s)
	letter := func(i int) bool { return i >= 0 && i < len(s) && (s[i] >= 'a' && s[i] <= 'z' || isLeet(s[i])) }
	for i, c := range b {
		if isLeet(c) && (letter(i-1) || letter(i+1)) {
			b[i] = leetLetters[strings.IndexByte(leetDigits, c)]
		}
	}
	return string(b)
}

const leetDigits, leetLetters = "013457", "oieast"

func isLeet(c byte) bool { return strings.IndexByte(leetDigits, c) >= 0 }
