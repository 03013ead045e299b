package mcp

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// maxName bounds the name of a tool that the model sees, in bytes.
const maxName = 128

// exposedName is what the model calls a server's tool.
func exposedName(server, tool string) string {
	name := "mcp__" + plainName(server) + "__" + plainName(tool)
	if len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(server + "\x00" + tool))
	tail := "_" + hex.EncodeToString(sum[:4])
	return name[:maxName-len(tail)] + tail
}

// plainName replaces what is no letter, digit, dash or underscore.
func plainName(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, s)
}
