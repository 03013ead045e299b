package shellread

import (
	"encoding/base64"
	"encoding/hex"
	"path"
	"strings"
)

// prints is what a program prints, for the few whose output follows from their
// arguments and input.
func (r *reader) prints(s *scope, p place, base string, args []field) output {
	switch base {
	case "echo", "print":
		return echoed(p.dialect, base, args)
	case "printf":
		return formatted(args)
	case "cat", "tee":
		if len(operands(args)) == 0 || base == "tee" || len(args) == 1 && args[0].lit == "-" {
			return p.stdin
		}
	case "rev", "tac", "tr", "base64", "gbase64", "openssl", "xxd":
		return filtered(base, p.stdin, args)
	case "pwd":
		if s.dir != "" {
			return output{text: s.dir + "\n", known: true}
		}
	case "dirname", "basename", "realpath", "readlink":
		return r.pathOf(s, base, args)
	case "which", "type", "whence", "where":
		return located(operands(args))
	case "printenv":
		if len(args) == 1 && args[0].open == "" {
			if text, ok := r.lookup(s, p, args[0].lit).constant(); ok {
				return output{text: text + "\n", known: true}
			}
		}
	case "ls", "gls":
		return listing(args)
	case "true", "false", ":", "mkdir", "touch", "cd", "export":
		return silent()
	}
	return output{network: networked(base)}
}

// networked names a program that prints what it downloads.
func networked(base string) string {
	switch base {
	case "curl", "wget", "http", "https", "aria2c", "nc", "ncat", "netcat", "socat", "lynx", "xh", "scp", "ftp", "lftp", "telnet":
		return base
	}
	return ""
}

func known(fields []field) bool {
	for _, f := range fields {
		if f.open != "" || f.glob {
			return false
		}
	}
	return true
}

func echoed(d Dialect, base string, args []field) output {
	newline, escapes := true, d != Bash || base == "print"
	for len(args) > 0 && len(args[0].lit) > 1 && args[0].lit[0] == '-' && strings.Trim(args[0].lit[1:], "neErlRs") == "" && args[0].open == "" {
		newline = newline && !strings.Contains(args[0].lit, "n")
		escapes = (escapes || strings.Contains(args[0].lit, "e")) && !strings.ContainsAny(args[0].lit, "ErR")
		args = args[1:]
	}
	if !known(args) {
		return output{names: args}
	}
	text := joinFields(args, " ").lit
	if escapes {
		text = ansiC(text)
	}
	if newline {
		text += "\n"
	}
	return output{text: text, known: true}
}

// formatted is what printf prints, for the conversions that occur in practice.
func formatted(args []field) output {
	if len(args) > 0 && args[0].lit == "--" {
		args = args[1:]
	}
	if len(args) == 0 || args[0].lit == "-v" {
		return silent()
	}
	if !known(args) {
		return output{names: args[1:]}
	}
	format, args := ansiC(args[0].lit), args[1:]
	var b strings.Builder
	for first := true; first || len(args) > 0; first = false {
		before := len(args)
		for i := 0; i < len(format); i++ {
			if format[i] != '%' || i+1 == len(format) {
				b.WriteByte(format[i])
				continue
			}
			i++
			arg := ""
			if format[i] != '%' && len(args) > 0 {
				arg, args = args[0].lit, args[1:]
			}
			switch format[i] {
			case '%':
				b.WriteByte('%')
			case 's', 'd', 'i', 'q':
				b.WriteString(arg)
			case 'b':
				b.WriteString(ansiC(arg))
			case 'c':
				b.WriteString(arg[:min(1, len(arg))])
			default:
				return output{}
			}
			if b.Len() > maxValue {
				return output{}
			}
		}
		if len(args) == before {
			break
		}
	}
	return output{text: b.String(), known: true}
}

// filtered is what a filter makes of a known input.
func filtered(base string, in output, args []field) output {
	if !in.known || !in.piped && in.text == "" || !known(args) {
		return output{network: in.network}
	}
	all := " " + joinFields(args, " ").lit + " "
	out := output{known: true}
	switch base {
	case "rev":
		for _, line := range strings.SplitAfter(in.text, "\n") {
			body := strings.TrimSuffix(line, "\n")
			runes := []rune(body)
			for i, j := 0, len(runes)-1; i < j; i, j = i+1, j-1 {
				runes[i], runes[j] = runes[j], runes[i]
			}
			out.text += string(runes) + line[len(body):]
			if len(out.text) > 4096 {
				return output{}
			}
		}
	case "tac":
		lines := strings.Split(strings.TrimSuffix(in.text, "\n"), "\n")
		for i := len(lines) - 1; i >= 0; i-- {
			out.text += lines[i] + "\n"
			if len(out.text) > 4096 {
				return output{}
			}
		}
	case "tr":
		return translated(in.text, args)
	case "xxd":
		if !strings.Contains(all, "r") {
			return output{}
		}
		raw, err := hex.DecodeString(strings.Join(strings.Fields(in.text), ""))
		return output{text: string(raw), known: err == nil}
	default:
		if base == "openssl" && !strings.Contains(all, "base64") {
			return output{}
		}
		if !strings.Contains(all, " -d ") && !strings.Contains(all, " -D ") && !strings.Contains(all, " --d") && !strings.Contains(all, " -di ") {
			return output{text: base64.StdEncoding.EncodeToString([]byte(in.text)) + "\n", known: true}
		}
		text := strings.TrimRight(strings.Join(strings.Fields(in.text), ""), "=")
		raw, err := base64.RawStdEncoding.DecodeString(text)
		return output{text: string(raw), known: err == nil}
	}
	return out
}

// translated is what tr prints.
func translated(text string, args []field) output {
	remove := len(args) > 0 && args[0].lit == "-d"
	if remove {
		args = args[1:]
	}
	if len(args) == 0 || strings.HasPrefix(args[0].lit, "-") || !remove && len(args) != 2 {
		return output{}
	}
	from := trSet(args[0].lit)
	if remove {
		return output{known: true, text: strings.Map(func(c rune) rune {
			if strings.ContainsRune(from, c) {
				return -1
			}
			return c
		}, text)}
	}
	to := trSet(args[1].lit)
	if to == "" {
		return output{}
	}
	var out []byte
	for i := 0; i < len(text); i++ {
		c := text[i]
		if at := strings.IndexByte(from, c); at >= 0 {
			c = to[min(at, len(to)-1)]
		}
		out = append(out, c)
	}
	return output{known: true, text: string(out)}
}

// trSet expands the ranges of a tr argument.
func trSet(text string) string {
	text = strings.NewReplacer("[:upper:]", "A-Z", "[:lower:]", "a-z", "[:digit:]", "0-9").Replace(ansiC(text))
	var out []byte
	for i := 0; i < len(text); i++ {
		if i+2 < len(text) && text[i+1] == '-' && text[i] < text[i+2] {
			for c := int(text[i]); c <= int(text[i+2]); c++ {
				out = append(out, byte(c))
			}
			i += 2
			continue
		}
		out = append(out, text[i])
	}
	return string(out)
}

// pathOf is what programs print that take a path apart or make it absolute.
func (r *reader) pathOf(s *scope, base string, args []field) output {
	rest := operands(args)
	if len(rest) == 0 || !known(rest[:1]) {
		return output{}
	}
	name := rest[0].lit
	switch base {
	case "dirname":
		name = path.Dir(name)
	case "basename":
		name = path.Base(name)
		if len(rest) > 1 {
			name = strings.TrimSuffix(name, rest[1].lit)
		}
	default:
		if name = resolve(s.dir, name); name == "" {
			return output{}
		}
	}
	return output{text: name + "\n", known: true}
}

// located is the path of the programs that the words name, near enough for their
// base names to count.
func located(words []field) output {
	if len(words) != 1 || !known(words) || words[0].lit == "" {
		return output{}
	}
	return output{text: "/usr/bin/" + baseName(words[0].lit) + "\n", known: true}
}

// listing is the names that ls prints.
func listing(args []field) output {
	rest := operands(args)
	if len(rest) == 0 {
		return output{names: []field{{lit: "*", pat: "*", glob: true}}}
	}
	var names []field
	for _, f := range rest {
		switch {
		case f.glob:
			names = append(names, f)
		case f.lit == "." || f.lit == "./":
			names = append(names, field{lit: "*", pat: "*", glob: true})
		default:
			return output{}
		}
	}
	return output{names: names}
}
