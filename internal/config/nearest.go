package config

// Nearest returns the name that word was most likely meant to be, or "".
func Nearest(word string, names []string) string {
	if len(word) > 64 {
		return "" // longer than any name of ours
	}
	best, at := "", len(word)/3+1
	for _, name := range names {
		if d := distance(word, name); d <= at && (best == "" || d < at) {
			best, at = name, d
		}
	}
	return best
}

// Misspelt returns the name that is one slip away from a word, or "". Unlike Nearest it
// is for words that may well be meant as they are.
func Misspelt(word string, names []string) string {
	for _, name := range names {
		if len(word) > 3 && len(word) <= len(name)+1 && distance(word, name) == 1 {
			return name
		}
	}
	return ""
}

// distance counts the bytes to insert, remove, replace or swap with a neighbour.
func distance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
