package shell

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"zcoder/internal/proc"
	"zcoder/tools"
)

// ending is what the text of a result needs besides the outcome.
type ending struct {
	limit         time.Duration
	kept, tracked bool // what becomes of survivors
}

// result tells an outcome to the model and to the progress line.
func result(out proc.Outcome, e ending, limit int) tools.Result {
	res := tools.Result{Status: tools.Failed}
	code := out.ExitCode
	switch {
	case out.Cancelled:
		res.Status, res.Line = tools.Cancelled, "cancelled"
	case out.TimedOut:
		res.Line = fmt.Sprintf("timed out after %v", e.limit)
	case out.Signal != "":
		res.Line, res.ExitCode = "killed by "+out.Signal, &code
	default:
		res.Line, res.ExitCode = fmt.Sprintf("exit %d", code), &code
	}
	if res.ExitCode != nil && code == 0 {
		res.Status = tools.OK
	}
	if n := len(out.Survivors); n > 0 {
		res.Line += fmt.Sprintf(" · %d in the background", n)
	}
	res.Text = text(out, e, limit)
	return res
}

func text(out proc.Outcome, e ending, limit int) string {
	var b strings.Builder
	b.WriteString("Exit code: " + exit(out, e) + "\n")
	body := strings.ToValidUTF8(out.Output, "\uFFFD")
	if body == "" {
		body = "(no output)\n"
	}
	notes := notes(out, e)
	// Replacement runes are longer than the bytes they stand for.
	b.WriteString(tools.Cut(body, max(minBody, limit-b.Len()-len(notes))))
	if notes != "" && !strings.HasSuffix(body, "\n") {
		b.WriteByte('\n')
	}
	b.WriteString(notes)
	return strings.TrimSuffix(b.String(), "\n")
}

func exit(out proc.Outcome, e ending) string {
	switch {
	case out.Cancelled:
		return "none (cancelled, and ended with all it had started)"
	case out.TimedOut:
		return fmt.Sprintf("none (timed out after %v, and ended with all it had started)", e.limit)
	case out.Signal != "":
		return fmt.Sprintf("%d (killed by %s)", out.ExitCode, out.Signal)
	}
	if name := signalStatus(out.ExitCode); name != "" {
		return fmt.Sprintf("%d (a shell gives this for a program killed by %s)", out.ExitCode, name)
	}
	return fmt.Sprint(out.ExitCode)
}

// signalStatus names the signal in a shell's exit status, for those signals whose
// status few programs use on their own.
func signalStatus(code int) string {
	switch code {
	case 132:
		return "SIGILL"
	case 134:
		return "SIGABRT"
	case 136:
		return "SIGFPE"
	case 137:
		return "SIGKILL"
	case 139:
		return "SIGSEGV"
	case 141:
		return "SIGPIPE"
	case 143:
		return "SIGTERM"
	}
	return ""
}

const (
	minBody    = 64 // bytes of output that are left whatever the limit
	maxNamed   = 5  // survivors that are named one by one
	maxCmdline = 80 // runes of a survivor's command line
)

// notes are lines of our own after the output.
func notes(out proc.Outcome, e ending) string {
	var b strings.Builder
	if n := len(out.Survivors); n > 0 {
		b.WriteString("[Still running in the background:")
		for _, s := range out.Survivors[:min(n, maxNamed)] {
			fmt.Fprintf(&b, " %d %s;", s.PID, short(s.Command))
		}
		if n > maxNamed {
			fmt.Fprintf(&b, " and %d more;", n-maxNamed)
		}
		b.WriteString(" " + fate(out, e) + "]\n")
	}
	if out.ExitCode != 0 && wantedPerson(out.Output) {
		b.WriteString("[It seems to want a terminal or a person's input, which run_command does not have. Use options that need neither, or ask the person to run it themselves with: ! command]\n")
	}
	return b.String()
}

func fate(out proc.Outcome, e ending) string {
	switch {
	case out.Cancelled || out.TimedOut:
		return "it could not be ended"
	case e.kept && e.tracked:
		return "it is left running; the person sees it with /jobs"
	case e.tracked:
		return "it is ended at the end of this turn"
	default:
		return "it was ended"
	}
}

func short(line string) string {
	line = strings.Join(strings.Fields(strings.ToValidUTF8(line, "\uFFFD")), " ")
	if utf8.RuneCountInString(line) > maxCmdline {
		return string([]rune(line)[:maxCmdline]) + "…"
	}
	return line
}

// signs are what programs say when there is no terminal, or nobody to answer.
var signs = [...]string{
	"a terminal is required", "no tty present", "a password is required", "terminal prompts disabled",
	"not a tty", "not a terminal", "isn't a terminal", "stdin is not a terminal", "must be run from a terminal",
	"inappropriate ioctl for device", "open /dev/tty", "/dev/tty: no such device", "failed tty get", "could not open tty",
	"eof when reading", "eoferror", "could not read username", "could not read password", "cannot read password",
	"host key verification failed", "permission denied (publickey,", "read_passphrase", "conversation failed",
	"authentication token manipulation error", "problem with the editor", "there was a problem with the editor",
	"output is not to a terminal", "input is not from a terminal", "terminal is not fully functional", "error opening terminal",
	"do you want to continue? [y/n] abort",
}

// maxSearched bounds the end of the output in which signs are looked for, in bytes.
const maxSearched = 4096

func wantedPerson(output string) bool {
	output = strings.ToLower(output[max(0, len(output)-maxSearched):])
	for _, s := range signs {
		if strings.Contains(output, s) {
			return true
		}
	}
	return false
}
