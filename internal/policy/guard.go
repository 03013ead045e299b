package policy

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"zcoder/internal/shellread"
)

// guard refuses commands that are unmistakably catastrophic, as far as a reading of
// their text shows them. It is a backstop: there are always spellings that it cannot
// see, so it never stands in for a person's approval.
type guard struct {
	facts     Facts
	elsewhere bool // commands for other hosts and containers are judged by their text
}

// check returns why a command is refused, or "".
func (g guard) check(r shellread.Reading) string {
	what := g.find(r)
	if what == "" {
		return ""
	}
	return "refused by the guard: " + what + ". Name exactly what is meant instead; a person who really wants this runs it with `! …`"
}

func (g guard) find(r shellread.Reading) string {
	if len(r.ForkBombs) > 0 {
		return "the function " + r.ForkBombs[0] + " starts ever more copies of itself (a fork bomb)"
	}
	for _, c := range r.Commands {
		if what := g.command(c); what != "" {
			return what
		}
	}
	for _, w := range r.Writes {
		if what := g.write(w); what != "" {
			return what
		}
	}
	return ""
}

// command judges one program by its base name.
func (g guard) command(c shellread.Command) string {
	base := path.Base(c.Program)
	if c.Elsewhere != "" && !g.elsewhere && len(c.Mounts) == 0 {
		return ""
	}
	switch base {
	case "rm", "grm", "srm", "rimraf", "trash", "del":
		return g.deletes(c, base)
	case "mv", "gmv":
		return g.moves(c, base)
	case "rsync":
		return g.mirrors(c)
	case "chmod", "chown", "chgrp", "chattr", "setfacl", "chflags", "gchmod", "gchown":
		return g.changes(c, base)
	case "rmdir":
		return g.empties(c)
	case "git":
		return g.cleans(c)
	case "tar", "gtar", "bsdtar":
		return g.packs(c, base)
	case "shred", "gshred":
		return g.shreds(c, base)
	case "perl", "python", "python2", "python3", "ruby", "node", "php":
		return forks(c, base)
	}
	return g.volume(c, base)
}

func anyKind(kind) bool        { return true }
func notWorkspace(k kind) bool { return k == systemKind || k == homeKind }

// flags are the options of a command: letters of clusters, and long names.
type flags struct {
	letters string
	long    []string
}

// split takes options and operands apart wherever they stand, as GNU programs do.
func split(words []shellread.Word) (flags, []shellread.Word) {
	var f flags
	var operands []shellread.Word
	ended := false
	for _, w := range words[min(1, len(words)):] {
		switch {
		case ended || !w.Known || len(w.Value) < 2 || w.Value[0] != '-':
			operands = append(operands, w)
		case w.Value == "--":
			ended = true
		case strings.HasPrefix(w.Value, "--"):
			f.long = append(f.long, w.Value[2:])
		default:
			f.letters += w.Value[1:]
		}
	}
	return f, operands
}

// has reports whether one of the letters or a long option, perhaps abbreviated, is
// given.
func (f flags) has(letters string, long ...string) bool {
	if strings.ContainsAny(f.letters, letters) {
		return true
	}
	for _, given := range f.long {
		given, _, _ = strings.Cut(given, "=")
		for _, name := range long {
			if len(given) > 1 && strings.HasPrefix(name, given) {
				return true
			}
		}
	}
	return false
}

func (g guard) deletes(c shellread.Command, base string) string {
	f, operands := split(c.Words)
	recursive := f.has("rR", "recursive") || base == "rimraf" || base == "trash"
	if f.has("", "help", "version") {
		return ""
	}
	for _, w := range operands {
		if what, ok := g.anyLoss(c, w, recursive, anyKind); ok {
			return base + " would delete " + what
		}
	}
	return ""
}

// anyLoss judges each thing that a word stands for. Of what lies elsewhere only the
// literals of systems and homes count.
func (g guard) anyLoss(c shellread.Command, w shellread.Word, recursive bool, counts func(kind) bool) (string, bool) {
	for _, t := range g.targets(c, w) {
		which := counts
		if t.literal {
			which = notWorkspace
		}
		if what, ok := g.loss(t, recursive, which); ok {
			if t.literal {
				what += " on " + strings.TrimPrefix(c.Elsewhere, "host ")
			}
			return what, true
		}
	}
	return "", false
}

// moves refuses to move a system or a home away, or anything protected to nowhere.
func (g guard) moves(c shellread.Command, base string) string {
	_, operands := split(c.Words)
	if len(operands) < 2 {
		return ""
	}
	counts := notWorkspace
	if operands[len(operands)-1].Value == "/dev/null" {
		counts = anyKind
	}
	for _, w := range operands[:len(operands)-1] {
		if what, ok := g.anyLoss(c, w, true, counts); ok {
			return base + " would move away " + what
		}
	}
	return ""
}

// mirrors refuses rsync --delete onto a system or a home.
func (g guard) mirrors(c shellread.Command) string {
	f, operands := split(c.Words)
	if !f.has("", "delete", "delete-before", "delete-after", "delete-during", "delete-excluded", "del") || f.has("n", "dry-run") || len(operands) < 2 {
		return ""
	}
	if what, ok := g.anyLoss(c, operands[len(operands)-1], true, notWorkspace); ok {
		return "rsync would delete what it does not send in " + what
	}
	return ""
}

// changes refuses recursive changes of owners and modes of a system or a home.
func (g guard) changes(c shellread.Command, base string) string {
	f, operands := split(c.Words)
	recursive := f.has("R", "recursive")
	if f.has("", "reference") {
		operands = append([]shellread.Word{{}}, operands...)
	}
	counts, mode := notWorkspace, 1
	if base == "chmod" || base == "gchmod" {
		for _, w := range c.Words[min(1, len(c.Words)):] {
			if shutsAll.MatchString(w.Value) {
				counts, mode = anyKind, 0
			}
		}
	}
	for i, w := range operands {
		deep := recursive || strings.Contains(w.Pattern, "**")
		if i < mode && !strings.HasPrefix(w.Value, "/") || !deep {
			continue
		}
		if what, ok := g.anyLoss(c, w, true, counts); ok {
			return base + " would change everything in " + what
		}
	}
	return ""
}

// shutsAll is a mode that leaves nobody any access.
var shutsAll = regexp.MustCompile(`^(0{1,4}|(a|ugo)?(-rwx|=))$`)

func (g guard) shreds(c shellread.Command, base string) string {
	_, operands := split(c.Words)
	for _, w := range operands {
		if name, ok := g.device(c.Dir, w.Value, w.Known, c.Elsewhere, c.Mounts); ok {
			return base + " would destroy the device " + name
		}
		if what, ok := g.anyLoss(c, w, false, anyKind); ok {
			return base + " would destroy the files in " + what
		}
	}
	return ""
}

var forkLoop = regexp.MustCompile(`fork\s*(\(\s*\))?\s+while\s+fork|while\s*\(?\s*(1|True|true)\s*\)?\s*:?\s*\{?\s*(os\.|Process\.)?fork|loop\s*\{\s*fork`)

// forks refuses the fork bombs that are written in other languages.
func forks(c shellread.Command, base string) string {
	for _, w := range c.Words {
		if forkLoop.MatchString(w.Value) {
			return base + " would start ever more copies of itself (a fork bomb)"
		}
	}
	return ""
}

// volume judges programs that format devices and destroy pools and volumes.
func (g guard) volume(c shellread.Command, base string) string {
	f, operands := split(c.Words)
	words := wordsOf(operands)
	first, second := at(words, 0), at(words, 1)
	destroys := false
	switch base {
	case "zpool":
		destroys = first == "destroy" || first == "labelclear"
	case "zfs":
		destroys = first == "destroy" && !f.has("n") && !strings.Contains(second, "@")
	case "lvremove", "vgremove", "pvremove":
		destroys = len(operands) > 0 && !f.has("t", "test", "help", "version")
	case "lvm":
		destroys = (first == "lvremove" || first == "vgremove" || first == "pvremove") && !f.has("t", "test")
	case "mdadm":
		destroys = f.has("", "zero-superblock")
	case "btrfs":
		destroys = (first == "subvolume" || first == "su" || first == "sub") && second == "delete" && !snapshots(words[2:]) || first == "device" && (second == "delete" || second == "remove")
	case "dmsetup":
		destroys = first == "remove_all" || first == "wipe_table"
	case "cryptsetup":
		destroys = slices.Contains(words, "erase") || slices.Contains(words, "luksErase") || slices.Contains(words, "luksFormat") && g.anyDevice(c, operands) != ""
	case "diskutil":
		destroys = slices.ContainsFunc(words, func(w string) bool {
			switch strings.ToLower(w) {
			case "erasedisk", "erasevolume", "zerodisk", "randomdisk", "secureerase", "partitiondisk", "deletecontainer", "deletevolume", "reformat":
				return true
			}
			return false
		})
	default:
		return g.formats(c, base, f, operands, words)
	}
	if !destroys || g.skips(c) {
		return ""
	}
	return base + " would destroy a pool, a volume or a device: " + brief(c.Text)
}

// skips reports whether a command runs where the guard does not look.
func (g guard) skips(c shellread.Command) bool { return c.Elsewhere != "" && !g.elsewhere }

func snapshots(names []string) bool {
	for _, name := range names {
		if !strings.Contains(strings.ToLower(name), "snap") {
			return false
		}
	}
	return len(names) > 0
}

// formats judges programs that write to a device that they are given.
func (g guard) formats(c shellread.Command, base string, f flags, operands []shellread.Word, words []string) string {
	writes := false
	switch {
	case strings.HasPrefix(base, "mkfs"), strings.HasPrefix(base, "newfs"), base == "mke2fs", base == "mkswap", base == "mkdosfs", base == "mkntfs", base == "mkexfatfs", base == "mkudffs", base == "blkdiscard":
		writes = !(strings.HasPrefix(base, "mk") && f.has("n") && base != "mkfs.vfat" && base != "mkfs.fat" && base != "mkdosfs" && base != "mkfs.exfat" && base != "mkfs.msdos")
	case base == "wipefs":
		writes = f.has("ao", "all", "offset") && !f.has("n", "no-act")
	case base == "sgdisk":
		writes = f.has("Zzodng", "zap-all", "zap", "clear", "delete", "new", "mbrtogpt")
	case base == "sfdisk":
		writes = !f.has("lsdVTJ", "list", "show-size", "dump", "verify", "list-types", "json", "help", "version", "no-act", "show-geometry")
	case base == "parted":
		writes = slices.ContainsFunc(words, func(w string) bool {
			return strings.Contains(w, "mklabel") || strings.Contains(w, "mktable") || w == "rm" || strings.HasPrefix(w, "mkpart")
		})
	case base == "badblocks":
		writes = f.has("w")
	case base == "nvme":
		writes = at(words, 0) == "format" || at(words, 0) == "sanitize" || at(words, 0) == "write"
	case base == "hdparm":
		writes = f.has("", "security-erase", "security-erase-enhanced", "trim-sector-ranges", "write-sector", "make-bad-sector")
	case base == "pvcreate":
		writes = f.has("f", "force")
	}
	if !writes {
		return ""
	}
	if name := g.anyDevice(c, operands); name != "" {
		return base + " would destroy what is on the device " + name
	}
	return ""
}

func (g guard) anyDevice(c shellread.Command, operands []shellread.Word) string {
	for _, w := range operands {
		if name, ok := g.device(c.Dir, w.Value, w.Known, c.Elsewhere, c.Mounts); ok {
			return name
		}
	}
	return ""
}

// write judges one written file: nothing may write to a block device past its file
// system.
func (g guard) write(w shellread.Write) string {
	switch w.By {
	case "chmod", "chown", "chgrp", "chattr", "setfacl", "chflags", "xattr", "touch", "mkdir", "mkfifo", "mknod", "ln", "gln", "rm", "grm", "srm", "rmdir", "unlink", "truncate",
		"wipefs", "blkdiscard", "mkswap", "mke2fs", "sgdisk", "sfdisk", "fdisk", "parted", "cfdisk", "gdisk", "badblocks", "shred", "gshred":
		return ""
	}
	if strings.HasPrefix(w.By, "mkfs") || w.Path == "" || w.Op == shellread.Remove {
		return ""
	}
	name, ok := g.device("/", w.Path, true, w.Elsewhere, w.Mounts)
	if !ok {
		return ""
	}
	return "the " + writer(w.By) + " would write over the device " + name
}

func writer(by string) string {
	if by == "redirection" {
		return by
	}
	return "program " + by
}

// device reports whether a name is a block device of this machine, or would be one
// elsewhere when the guard looks there.
func (g guard) device(dir, name string, known bool, elsewhere string, mounts []shellread.Mount) (string, bool) {
	if !known || name == "" {
		return "", false
	}
	if !path.IsAbs(name) {
		if dir == "" {
			return "", false
		}
		name = path.Join(dir, name)
	}
	name = path.Clean(name)
	if elsewhere == "" {
		return name, g.isDevice(name)
	}
	t := target{raw: name}
	for _, m := range mounts {
		if mapped, ok := t.through(m); ok && g.isDevice(path.Clean(mapped.raw)) {
			return mapped.raw, true
		}
	}
	return name, g.elsewhere && looksLikeDevice(name)
}

// isDevice asks the machine, and goes by the usual names where it does not know.
func (g guard) isDevice(name string) bool {
	if g.facts.IsBlockDevice != nil && g.facts.IsBlockDevice(name) {
		return true
	}
	if !looksLikeDevice(name) || g.facts.IsRegular != nil && g.facts.IsRegular(name) {
		return false
	}
	if g.facts.Identity != nil && g.facts.IsBlockDevice != nil && !isMemory(name) {
		if _, _, exists := g.facts.Identity(name); exists {
			return false
		}
	}
	return true
}

func isMemory(name string) bool {
	return name == "/dev/mem" || name == "/dev/kmem" || name == "/dev/port"
}

var deviceName = regexp.MustCompile(`^/dev/((sd|hd|vd|xvd)[a-z*?\[].*|nvme[0-9*?\[].*|mmcblk.*|md[0-9*/].*|dm-.*|mapper/.+|disk/by-.+/.+|loop[0-9*].*|ram[0-9].*|zram.*|zd[0-9].*|zvol/.+|sr[0-9].*|nbd[0-9].*|rbd.*|drbd.*|bcache[0-9].*|r?disk[0-9].*|mem|kmem|port)$`)

func looksLikeDevice(name string) bool {
	return deviceName.MatchString(name) && name != "/dev/mapper/control"
}

func wordsOf(list []shellread.Word) []string {
	out := make([]string, len(list))
	for i, w := range list {
		out[i] = w.Value
	}
	return out
}

func at(list []string, i int) string {
	if i < len(list) {
		return list[i]
	}
	return ""
}
