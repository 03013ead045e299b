package termtext

import (
	"strings"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/graphemes"
	"github.com/mattn/go-runewidth"
)

// tabStop is the distance of tab stops in cells.
const tabStop = 8

// Width returns the number of cells that one line of safe text takes. Runes of
// ambiguous width count 1; a tab reaches to the next multiple of 8 cells from the
// start of s.
func Width(s string) int {
	if isPrintable(s) {
		return len(s)
	}
	width := 0
	eachCluster(s, func(_, cluster string) bool {
		width += clusterWidth(cluster, width)
		return true
	})
	return width
}

// Wrap divides s at its line ends and after at most width cells, between grapheme
// clusters, and expands tabs. Nothing is dropped: a cluster wider than a row has a
// row of its own. A width below 1 counts as 1. It returns at least one row.
func Wrap(s string, width int) []string {
	width = max(width, 1)
	var rows []string
	for line := range strings.SplitSeq(s, "\n") {
		rows = wrapLine(rows, line, width)
	}
	return rows
}

func wrapLine(rows []string, line string, width int) []string {
	line = expandTabs(line)
	if isPrintable(line) {
		for len(line) > width {
			rows = append(rows, line[:width])
			line = line[width:]
		}
		return append(rows, line)
	}
	start, at, used := 0, 0, 0
	eachCluster(line, func(_, cluster string) bool {
		w := clusterWidth(cluster, used)
		if used > 0 && used+w > width {
			rows = append(rows, line[start:at])
			start, used = at, 0
		}
		used += w
		at += len(cluster)
		return true
	})
	return append(rows, line[start:])
}

func expandTabs(line string) string {
	if !strings.Contains(line, "\t") {
		return line
	}
	var b strings.Builder
	used := 0
	eachCluster(line, func(_, cluster string) bool {
		w := clusterWidth(cluster, used)
		if cluster == "\t" {
			cluster = strings.Repeat(" ", w)
		}
		b.WriteString(cluster)
		used += w
		return true
	})
	return b.String()
}

// Cut returns one line of safe text within width cells: s itself when it fits, else
// its beginning and "…". A width below 1 gives "".
func Cut(s string, width int) string {
	if width < 1 {
		return ""
	}
	if len(s) <= width && isPrintable(s) || Width(s) <= width {
		return s
	}
	used, kept := 0, 0
	eachCluster(s, func(before, cluster string) bool {
		w := clusterWidth(cluster, used)
		if used+w > width-1 {
			return false
		}
		used += w
		kept = len(before) + len(cluster)
		return true
	})
	return s[:kept] + "…"
}

// isPrintable reports whether s is ASCII without controls: one cell a byte.
func isPrintable(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i]-0x20 >= 0x5f {
			return false
		}
	}
	return true
}

func clusterWidth(cluster string, at int) int {
	if cluster == "\t" {
		return tabStop - at%tabStop
	}
	c := runewidth.Condition{StrictEmojiNeutral: true}
	return c.StringWidth(cluster)
}

// eachCluster calls yield with what stands before each grapheme cluster and the
// cluster, until it returns false. The clusters together are s.
func eachCluster(s string, yield func(before, cluster string) bool) {
	at := 0
	for at < len(s) {
		n := clusterLen(s[at:])
		if !yield(s[:at], s[at:at+n]) {
			return
		}
		at += n
	}
}

// clusterLen returns the length of the first cluster of s. The segmenter stops at a
// rune that the end of s cuts; each byte of it then stands for itself.
func clusterLen(s string) int {
	if len(s) == 1 || s[0]-0x20 < 0x5f && s[1]-0x20 < 0x5f {
		return 1
	}
	if !utf8.FullRuneInString(s) {
		return 1
	}
	g := graphemes.FromString(s)
	if !g.Next() || g.End() < 1 {
		return 1
	}
	return g.End()
}
