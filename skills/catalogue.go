package skills

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

const catalogueHead = "Skills are guidance for certain tasks. Before a task that one fits, call activate_skill with its name. They grant no permission.\n"

// Catalogue is the list of skills for the prompt, of at most maxBytes; empty without
// skills. truncated says that some had no room, so that discover_skills is needed.
func (l *Library) Catalogue(maxBytes int) (text string, truncated bool) {
	list := l.Set().Skills
	if len(list) == 0 {
		return "", false
	}
	more := func(n int) string { return fmt.Sprintf("- %d more: discover_skills finds them", n) }
	var b strings.Builder
	b.WriteString(catalogueHead)
	room := maxBytes - b.Len()
	for i, k := range list {
		line := "- " + k.Name + ": " + k.Description + "\n"
		reserve := 0
		if i < len(list)-1 {
			reserve = len(more(len(list)))
		}
		if len(line)+reserve > room {
			b.WriteString(more(len(list) - i))
			return b.String(), true
		}
		b.WriteString(line)
		room -= len(line)
	}
	return strings.TrimSuffix(b.String(), "\n"), false
}

// maxHits bounds what discover_skills returns.
const maxHits = 20

// Search returns the skills that the words of a query fit best, the best first; all
// skills for an empty query.
func (s *Set) Search(query string) []Skill {
	words := strings.Fields(strings.ToLower(query))
	type hit struct {
		skill Skill
		score int
	}
	var hits []hit
	for _, k := range s.Skills {
		name, description := strings.ToLower(k.Name), strings.ToLower(k.Description)
		score := 0
		for _, w := range words {
			switch {
			case strings.Contains(name, w):
				score += 3
			case strings.Contains(description, w):
				score++
			}
		}
		if score > 0 || len(words) == 0 {
			hits = append(hits, hit{k, score})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.score, a.score) })
	var list []Skill
	for _, h := range hits {
		list = append(list, h.skill)
	}
	return list
}
