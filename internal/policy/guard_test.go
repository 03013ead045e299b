package policy

import (
	"encoding/base64"
	"fmt"
	"os"
	"path"
	"sort"
	"strings"
	"testing"

	"zcoder/internal/approval"
	"zcoder/internal/shellread"
)

// machine is a made-up file tree: the identity of each path that exists.
type machine struct {
	ids     map[string]uint64
	links   map[string]bool
	blocks  map[string]bool
	regular map[string]bool
}

func testMachine() machine {
	m := machine{ids: map[string]uint64{}, links: map[string]bool{}, blocks: map[string]bool{}, regular: map[string]bool{}}
	for i, dir := range []string{"/", "/bin", "/etc", "/usr", "/usr/bin", "/var", "/var/lib", "/home", "/home/u", "/home/u/ws", "/home/u/ws/build", "/home/bob", "/root", "/mnt", "/mnt/data", "/tmp", "/opt", "/dev"} {
		m.ids[dir] = uint64(i + 1)
	}
	// Other names of the same directories: links in the workspace and elsewhere.
	for link, dir := range map[string]string{"/home/u/ws/rootlink": "/", "/tmp/homelink": "/home/u", "/proc/self/cwd": "/home/u/ws", "/home/u/ws/../../u": "/home/u"} {
		m.ids[link] = m.ids[dir]
		m.links[link] = true
		m.ids[link+"/"] = m.ids[dir]
	}
	for _, dev := range []string{"/dev/sda", "/dev/sda1", "/dev/nvme0n1", "/dev/vg0/root", "/dev/disk/by-id/x"} {
		m.ids[dev] = uint64(100 + len(m.blocks))
		m.blocks[dev] = true
	}
	for _, file := range []string{"/home/u/ws/disk.img", "/home/u/ws/a.c", "/dev/sdimage"} {
		m.ids[file] = uint64(200 + len(m.regular))
		m.regular[file] = true
	}
	return m
}

func testFacts() Facts {
	m := testMachine()
	env := map[string]string{"HOME": "/home/u", "PATH": "/usr/bin:/bin", "USER": "u", "TMPDIR": "/tmp", "BUILD_DIR": "/home/u/ws/build"}
	return Facts{
		Root: "/home/u/ws", Home: "/home/u", OtherHomes: []string{"/root", "/home/bob"}, MountPoints: []string{"/", "/mnt/data", "/tmp"}, SettingsDir: "/home/u/.config/zcoder",
		Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok },
		UserHome: func(user string) (string, bool) {
			dir, ok := map[string]string{"root": "/root", "bob": "/home/bob", "u": "/home/u"}[user]
			return dir, ok
		},
		Identity: func(name string) (uint64, uint64, bool) {
			id, ok := m.ids[name]
			if !ok {
				id, ok = m.ids[path.Clean(name)]
			}
			return 1, id, ok
		},
		IsLink:        func(name string) bool { return m.links[name] },
		IsBlockDevice: func(name string) bool { return m.blocks[name] },
		IsRegular:     func(name string) bool { return m.regular[name] },
	}
}

func testPolicy(t testing.TB, change func(*Config)) *Policy {
	t.Helper()
	cfg := Config{Facts: testFacts(), Profile: Profile{Name: "coding"}}
	if change != nil {
		change(&cfg)
	}
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func sysadmin(c *Config) {
	c.Profile = Profile{Name: "sysadmin", CommandsAlwaysAsk: true, NoGrant: true, RefuseYes: true, WorkersOff: true, NoAllowRules: true, GuardElsewhere: true}
}

func command(text string) approval.Request {
	return approval.Request{Tool: "run_command", Effect: approval.Exec, Origin: approval.OriginUser, Text: text, Dir: "/home/u/ws"}
}

func refused(p *Policy, text string) (string, bool) {
	v := p.Judge(command(text))
	return v.Reason, v.Decision == approval.Deny && v.Rule == "guard"
}

func TestGuardRefuses(t *testing.T) {
	for what, commands := range map[string][]string{
		"root":      {"rm -rf /", "rm -rf /*", "rm -rf --no-preserve-root /", "rm -fr -- /", "rm -r /.", "rm -rf //", "rm -rf /../", "rm / -rf", "rm --recursive --force /", "rm --rec /", "rm -rf /tmp/../", "cd / && rm -rf *", "cd /; rm -rf .", "rm -rf /home/u/ws/../../../"},
		"system":    {"rm -rf /etc", "rm -rf /usr/*", "rm -rf /usr/bin", "rm -rf /bin /x", "rm -rf /{usr,x}", "rm -rf /us?", "rm -rf /va[r]", "rm -rf /var/lib/*", "cd /etc && rm -rf ./*", "rm -rf /boot", "rm -rf /dev/"},
		"home":      {"rm -rf ~", "rm -rf ~/", "rm -rf ~/*", "rm -rf $HOME", `rm -rf "$HOME"/*`, "rm -rf ${HOME}/", "rm -rf /home/u", "rm -rf ~bob", "rm -rf ~root/*", "rm -rf /home/*", "rm -rf /home", "rm -rf /home/someone", "rm -rf ../../u", "cd && rm -rf *", "rm -rf ~/.*", "rm -f ~/*", "rm -rf /home/*/*"},
		"workspace": {"rm -rf .", "rm -rf ./", "rm -rf ./*", "rm -rf *", `rm -rf "$PWD"`, "rm -rf $PWD/*", "rm -rf /home/u/ws", "rm -rf ../ws", "rm -rf ..", "rm -rf ../*", "rm -rf * .*", "rm -f *", "rm -rf **/*", "rm -rf */", "rm -rf build/..", "rm -rf $(pwd)", `rm -rf "$(git rev-parse --show-toplevel)"`, "rm -rf /proc/self/cwd/"},
		"unset":     {`rm -rf "$UNSET/"*`, "rm -rf $UNSET/", "rm -rf ${UNSET}/*", `rm -rf "${A}${B}/"`, "rm -rf $UNSET/etc", "rm -rf $1/*", "bash -c 'rm -rf $1/*'"},
		"links":     {"rm -rf rootlink/*", "rm -rf /tmp/homelink/", "rm -rf /tmp/homelink/*", "rm -rf rootlink/."},
		"mounts":    {"rm -rf /mnt/data", "rm -rf /mnt/data/*", "rm -rf /mnt/*", "find /mnt/data -delete"},
		"wrapped":   {"sudo rm -rf /", "env rm -rf /", "sh -c 'rm -rf /'", "sudo sh -c 'cd / && rm -rf *'", "nice -n5 timeout 5 rm -rf ~", "echo / | xargs rm -rf", "busybox rm -rf /", "\\rm -rf /", "/bin/rm -rf /", "command rm -rf /", "eval 'rm -rf /'", "X=rm; $X -rf /", "D=/; rm -rf $D", "f() { rm -rf \"$1\"; }; f /", "for d in /usr /etc; do rm -rf $d; done", "true && { false || rm -rf /; }", "(rm -rf /)", "rm -rf / &", "ls | rm -rf /", "echo $(rm -rf /)", "cat <(rm -rf /)", "trap 'rm -rf /' EXIT", "if true; then rm -rf ~; fi", "repeat 3; do rm -rf /; done", "noglob rm -rf /", "- rm -rf /", "ssh localhost rm -rf /", "unshare -r rm -rf /", "nsenter -t 1 -m rm -rf /", "watch 'rm -rf /'", "parallel rm -rf ::: / x", "find . -exec rm -rf / \\;", "git -c alias.x='!rm -rf /' x", "git submodule foreach 'rm -rf /'", "tmux new -d 'rm -rf ~'", "su -c 'rm -rf /'", "runuser -u bob -- rm -rf /home/bob", "chroot / rm -rf /etc", "at now <<< 'rm -rf /'"},
		"find":      {"find / -delete", "find . -delete", "find ~ -type f -delete", "find / -exec rm -rf {} +", "find . -exec rm {} \\;", "find / -mindepth 1 -delete", "find . -not -name x -delete", "find / -name x -o -delete", "find . -print0 | xargs -0 rm -rf", "ls | xargs rm -rf", "find /etc /x -delete", "find . -name '*' -delete", "find . -exec sh -c 'rm -rf \"$@\"' _ {} +", "find / | while read f; do rm -rf \"$f\"; done", "sudo find / -xdev -delete", "find / -exec shred -u {} +"},
		"devices":   {"mkfs.ext4 /dev/sda1", "mkfs -t xfs /dev/nvme0n1", "mke2fs /dev/vg0/root", "mkswap /dev/sda1", "dd if=/dev/zero of=/dev/sda", "sudo dd if=x of=/dev/sda bs=1M", "cat x > /dev/sda", "echo x | tee /dev/sda", "cp x /dev/sda", "shred /dev/sda", "shred -n3 -z /dev/nvme0n1", "wipefs -a /dev/sda", "blkdiscard /dev/sda", "sgdisk --zap-all /dev/sda", "parted -s /dev/sda mklabel gpt", "sfdisk /dev/sda < t", "badblocks -w /dev/sda", "> /dev/sda", "dd of=/dev/sdb < x", "dd of=/dev/disk/by-id/x", "cryptsetup luksFormat /dev/sda1", "nvme format /dev/nvme0n1", "pv x > /dev/sda", "zcat x | dd of=/dev/sda"},
		"volumes":   {"zpool destroy tank", "zfs destroy -r tank/data", "lvremove -f vg0/root", "vgremove vg0", "pvremove /dev/sda1", "lvm lvremove vg0/x", "mdadm --zero-superblock /dev/sda1", "btrfs subvolume delete /mnt/data/@home", "dmsetup remove_all", "diskutil eraseDisk JHFS+ x disk0"},
		"modes":     {"chmod -R 777 /", "chown -R u /usr", "chmod -R 000 ~", "chown -R u:u /home", "sudo chown -R u /etc", "chmod --recursive 777 /*", "chgrp -R x /var", "find / -exec chmod 777 {} +", "chmod -R --reference=x /"},
		"bombs":     {":(){ :|:& };:", "bomb() { bomb | bomb & }; bomb", "perl -e 'fork while fork'", "python3 -c 'import os\nwhile True: os.fork()'"},
		"mapped":    {"docker run -v /:/host alpine rm -rf /host", "docker run -v /:/host alpine rm -rf /host/etc", "docker run -v \"$PWD\":/w -w /w img rm -rf *", "docker run -v $HOME:/h img sh -c 'rm -rf /h/*'", "docker run --mount type=bind,src=/,dst=/x img rm -rf /x/usr", "docker run -v /home/u/ws:/w img rm -rf /", "podman run --privileged img dd if=/dev/zero of=/dev/sda", "chroot / rm -rf /home", "docker run -v /:/host alpine chroot /host rm -rf /usr"},
		"moved":     {"mv ~ /tmp/x", "mv /usr/* /tmp", "mv * /dev/null", "rsync -a --delete empty/ /"},
		"failing":   {"cd /doesnotexist; rm -rf *", "cd /doesnotexist\nrm -rf *", "cd /doesnotexist || rm -rf *", "cd nowhere; rm -rf ./*", "cd /a; cd b; rm -rf *", "cd /a || echo no; rm -rf *", "{ cd /a; }; rm -rf *", "(cd /a; rm -rf *)", "[ -d a ] && cd a; rm -rf *", "! cd /a && rm -rf *", "if [ -d a ]; then cd a; fi; rm -rf *", "if cd /a; then :; else rm -rf *; fi", "f() { cd /a; }; f; rm -rf *", "sh -c 'cd /a; rm -rf *'", "cd /a; sudo rm -rf *", "cd /a; sh -c 'rm -rf *'", "pushd /a; rm -rf *", "set -e; cd /a && ls; rm -rf *", "cd /a; find . -delete", "cd a; rm -rf .."},
		"clean":     {"git -C / clean -fdx", "git clean -fdx /", "git -C ~ clean -ffd", "cd ~ && git clean -fdx", "cd / && git clean -dfx -e x", "git clean -fdx ~/", "git --work-tree=/ clean -fd"},
		"wide":      {"find / -user root -delete", "find / -size +0 -delete", "find / -depth -exec rmdir {} +", "find . -size +0c -delete", "find / -user 0 -type f -delete", "find /etc -uid 0 -delete", "find / -group root -delete", "find ~ -user u -delete", "find . -mtime +0 -delete", "find / -newermt 1970-01-01 -delete", "find / -fstype ext4 -delete", "find . -perm /777 -delete", "find . -links +0 -delete", "cd / && find . -user root -delete"},
		"tar":       {"tar --remove-files -cf x /", "tar cf x --remove-files /etc", "tar --remove-f -czf /tmp/x.tgz .", "tar -C / --remove-files -cf x .", "tar -cf x --remove-files -C /home u", "tar --create --file=x --remove-files ~"},
		"fd":        {"fd . / -x rm", "fd . -X rm -rf", "fd -x rm", "fd -t f . ~ --exec rm {}", "fd -H . / -X rm", "fd '.*' /etc -x rm -f", "fd . / | xargs rm -rf", "fd --base-directory / -x rm", "fdfind . /usr -x shred -u"},
		"shut":      {"chmod -R 000 .", "chmod -R a-rwx .", "chmod -R 0 *", "chmod -R -rwx .", "chmod 000 -R \"$PWD\"", "chmod -R a= .", "chmod -R ugo-rwx ../ws"},
		"code":      {`python3 -c 'import shutil; shutil.rmtree("/")'`, `python3 -c "import os; os.system('rm -rf ~')"`, `perl -e 'system("rm -rf /")'`, `node -e 'require("child_process").execSync("rm -rf /")'`, `ruby -e 'require "fileutils"; FileUtils.rm_rf("/")'`, `awk 'BEGIN{system("rm -rf /")}'`},
	} {
		t.Run(what, func(t *testing.T) {
			p := testPolicy(t, nil)
			for _, text := range commands {
				reason, ok := refused(p, text)
				if !ok {
					t.Errorf("not refused: %s", text)
				} else if !strings.HasPrefix(reason, "refused by the guard: ") || !strings.Contains(reason, "`! …`") {
					t.Errorf("%s: reason %q", text, reason)
				}
			}
		})
	}
}

// harmless commands come near a catastrophe in text only.
var harmless = []string{
	`echo "rm -rf /"`, `git commit -m "rm -rf / is bad"`, `grep -rn 'rm -rf /' .`, "cat > notes.md <<'EOF'\nrm -rf /\ndd if=x of=/dev/sda\nEOF", `printf 'rm -rf ~\n' >> README.md`,
	`python3 -c "print('rm -rf /')"`, `sed -i 's/rm -rf \///' x.sh`, `awk '/rm -rf \//' x`, "# rm -rf /\nls", `rg "mkfs.ext4 /dev/sda"`, "man mkfs.ext4", "which mkfs.ext4 shred", "echo rm -rf / | tee notes",
	"rm -rf build", "rm -rf build/*", "rm -rf ./build", "rm -rf node_modules dist", "rm -f *.o", "rm -rf ./*.tmp", "rm a.c", "cd build && rm -rf *", "mkdir -p out && cd out && rm -rf ./*", "rm -rf ~/.cache/foo", "rm -rf ~/Downloads/x", "rm -rf /tmp/x", "rm -rf /tmp/*", `rm -rf "$BUILD_DIR"`, `rm -rf "$BUILD_DIR"/*`, "rm -rf ${TMPDIR:-/tmp}/x", "rm -rf /usr/local/go", "rm -rf /var/tmp/x", "rm -rf '*'", "rm -rf '~'", `rm -rf "./~"`, "rm -rf rootlink", "rm -rf /home/u/ws/build", "rm -rf /mnt/data/old", "rm -rf .git/index.lock", "rm -rf /opt/app/releases/1", "rm -r -- -x",
	`t=$(mktemp -d); trap 'rm -rf "$t"' EXIT; rm -rf "$t"/*`, `set -u; rm -rf "$UNSET/"*`, `rm -rf "${UNSET:?}/"*`, "D=build; rm -rf $D/*", `read D; rm -rf "$D"/*`, "for d in a b; do rm -rf $d/*; done", "rm -rf $(cat list)", `[ -n "$X" ] && X=1; rm -rf "$X/"`,
	"find . -name '*.o' -delete", "find build -delete", "find /tmp/x -delete", "find . -type d -name node_modules -exec rm -rf {} +", "find / -name core -print", "find . -mtime +30 -delete", `find . \( -name a -o -name b \) -delete`, "find . -empty -delete", "find . -name '*.pyc' | xargs rm -f", "find /var/log -name '*.gz' -exec rm {} +",
	"mkfs.ext4 disk.img", "dd if=/dev/zero of=disk.img bs=1M count=1", "dd if=/dev/sda of=backup.img", "wipefs /dev/sda", "sfdisk -l /dev/sda", "parted /dev/sda print", "sgdisk -p /dev/sda", "shred -u secret.txt", "zpool status", "zfs list", "zfs destroy tank/a@snap1", "lvs", "lvremove --test vg0/x", "mdadm --detail /dev/md0", "btrfs subvolume list /", "cat /dev/sda1 > x.img", "ls > /dev/null", "echo x > /dev/stderr", "mkfs.ext4 -V", "cryptsetup status x", "cp a.c /dev/sdimage", "badblocks -sv /dev/sda", "smartctl -a /dev/sda", "mount /dev/sda1 /mnt/data",
	"chmod -R u+rwX .", "chown -R u:u .", "chmod -R 755 build", "chmod 755 /usr/local/bin/x", "chmod 700 ~", "chown u ~/x", "chmod -R go-w ~/.ssh", "chown -R www-data /var/www/site",
	"f() { f; }; f", "f() { sleep 1; f & }; f", "ls | cat &", "make -j8 &",
	"ssh web1 rm -rf /", "ssh web1 'rm -rf ~'", "docker exec c rm -rf /", "docker run --rm img rm -rf /", `docker run --rm -v "$PWD":/w img rm -rf /w/build`, "docker run -v cache:/c img rm -rf /c", `docker run -v "$PWD":/w:ro img ls /`, "kubectl exec pod -- rm -rf /", "chroot /mnt/other rm -rf /", "chroot /tmp/x rm -rf /etc",
	"cd build; rm -rf *", "cd build || exit 1; rm -rf *", "cd build || { echo no; exit 1; }; rm -rf *", "die() { echo \"$1\"; exit 1; }; cd build || die x; rm -rf *", "set -e; cd build; rm -rf *", "set -euo pipefail\ncd build\nrm -rf *", "if cd build; then rm -rf *; fi", "if ! cd build; then exit 1; fi; rm -rf *", "cd build && rm -rf * ; cd ..", "cd build && { rm -rf *; }", "cd build && ls | xargs rm -f", "cd build; rm -rf x/*", "cd build; make clean", "[ -d build ] && cd build && rm -rf *", "f() { cd build || return; rm -rf *; }; f",
	"git clean -n -fdx /", "git -C build clean -fdx", "git -C ~/src/x clean -fdx", "git clean -fdx build", "git -C / status", "find . -user bob -delete", "find . -user root -delete", "find . -size +100M -delete", "find . -size +10k -delete", "find . -mtime +1 -delete", "find . -perm -4000 -delete", "find . -depth -type d -empty -exec rmdir {} +", "find . -depth -type d -exec rmdir {} \\;", "find build -size +0 -delete", "find /tmp/x -user root -delete", "find . -newermt 2026-01-01 -delete",
	"tar --remove-files -cf x build", "tar -C / --remove-files -cf x tmp/x", "tar -cf x /", "tar -C / -cf /tmp/x.tar --exclude=proc .", "tar -xf x.tar -C /", "fd . / -x ls", "fd -e o -x rm", "fd node_modules -x rm -rf", "fd . build -x rm", "fd -t d '^target$' -x rm -rf", "fd -t l . -x rm", "fd . | xargs wc", "chmod -R 700 .", "chmod -R a-w .", "chmod -R 000 build", "chmod 000 .", "chmod -R o-rwx .", "chmod -R go-rwx .",
	"git clean -fdx", "find . -type f -exec chmod 644 {} +", "find . -exec grep x {} +", "rm -rf $NOTHING", `cd "$(cat d)" && rm -rf *`, "git checkout -- .", "git rm -r .", "mv * ../backup", "mv build /tmp", "rsync -a --delete a/ b/", "rsync -an --delete x/ /", "tar -C / -cf x.tar etc", "alias x='rm -rf /'", "rm -rf ./-rf", "echo / | xargs ls", "echo 'rm -rf /' > x.sh", "ls -la /", "du -sh ~", "rm --help", "command -v rm", "type rm", "docker system prune -f", "apt-get remove x", "truncate -s0 x.log", ": > x", "yes | head", "xargs rm -f < list", "rmdir ~/x",
}

func TestGuardLeavesHarmlessCommandsAlone(t *testing.T) {
	if len(harmless) < 60 {
		t.Fatalf("only %d near misses", len(harmless))
	}
	for _, d := range []shellread.Dialect{shellread.Zsh, shellread.Bash} {
		p := testPolicy(t, func(c *Config) { c.Dialect = d })
		for _, text := range harmless {
			if reason, ok := refused(p, text); ok {
				t.Errorf("refused: %s: %s", text, reason)
			}
		}
	}
	t.Logf("%d near misses, none refused", len(harmless))
}

func TestGuardOnAList(t *testing.T) {
	data, err := os.ReadFile("testdata/commands.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []shellread.Dialect{shellread.Zsh, shellread.Bash} {
		p := testPolicy(t, func(c *Config) { c.Dialect = d })
		for _, line := range strings.Split(strings.TrimSpace(string(data)), "\n") {
			mark, text, _ := strings.Cut(line, " ")
			if mark == "#" {
				continue
			}
			text = strings.ReplaceAll(text, "␤", "\n")
			if reason, ok := refused(p, text); ok != (mark == "R") {
				t.Errorf("%s: refused %v: %s", text, ok, reason)
			}
		}
	}
}

func TestSysadminGuardsElsewhere(t *testing.T) {
	p := testPolicy(t, sysadmin)
	for text, want := range map[string]bool{
		"ssh web1 rm -rf /": true, "ssh web1 'rm -rf /etc'": true, "ssh web1 'sudo mkfs.ext4 /dev/sda1'": true, "docker exec c rm -rf /": true, "ssh h 'dd if=/dev/zero of=/dev/sda'": true, "ssh h zpool destroy tank": true, "ssh h 'chmod -R 777 /'": true,
		"ssh web1 uptime": false, "ssh web1 rm -rf /tmp/x": false, "docker exec c rm -rf /app": false, "ssh h 'echo rm -rf /'": false,
	} {
		if _, ok := refused(p, text); ok != want {
			t.Errorf("%s: refused %v, want %v", text, ok, want)
		}
	}
}

// respellings writes one deletion in many ways; %s is the target.
var respellings = []string{
	"rm -rf %s", "rm -fr %s", "rm -r -f %s", "rm -R %s", "rm %s -rf", "rm --recursive --force %s", "rm --rec %s", "rm -rf -- %s", "rm -rfv --one-file-system %s", "rm -rf --no-preserve-root %s",
	`\rm -rf %s`, "/bin/rm -rf %s", "/usr/bin/rm -rf %s", "'rm' -rf %s", `r"m" -rf %s`, `r''m -rf %s`, `$'rm' -rf %s`, `$'\x72\x6d' -rf %s`, `$'\162m' -rf %s`, "r\\\nm -rf %s", `"rm" "-rf" %s`,
	"command rm -rf %s", "builtin command rm -rf %s", "exec rm -rf %s", "env rm -rf %s", "env -i rm -rf %s", "env A=1 rm -rf %s", "env -S 'rm -rf %s'", "A=1 rm -rf %s", "nice rm -rf %s", "nice -n 19 rm -rf %s", "ionice -c3 rm -rf %s", "timeout 60 rm -rf %s", "stdbuf -o0 rm -rf %s", "nohup rm -rf %s", "setsid rm -rf %s", "time rm -rf %s", "sudo rm -rf %s", "sudo -n -u root rm -rf %s", "sudo -- rm -rf %s", "doas rm -rf %s", "busybox rm -rf %s", "toybox rm -rf %s", "chrt 1 rm -rf %s", "taskset 1 rm -rf %s", "strace -f rm -rf %s", "unshare -r rm -rf %s", "systemd-run --wait rm -rf %s", "flock x rm -rf %s", "script -qc 'rm -rf %s' /dev/null", "watch -n1 rm -rf %s", "xargs -a /dev/null rm -rf %s", "setarch x86_64 rm -rf %s", "ld-linux-x86-64.so.2 /bin/rm -rf %s",
	"sh -c 'rm -rf %s'", "bash -c 'rm -rf %s'", `zsh -c "rm -rf %s"`, "dash -ec 'rm -rf %s'", "bash -lc 'rm -rf %s'", "sudo bash -c 'rm -rf %s'", "su root -c 'rm -rf %s'", "env bash -c 'rm -rf %s'", "sh -c \"sh -c 'rm -rf %s'\"", "bash -c '$0 -rf %s' rm", `bash -c 'rm -rf "$1"' _ %s`, `sh -c '"$@"' _ rm -rf %s`, "sh <<< 'rm -rf %s'", "sh <<'E'\nrm -rf %s\nE", "cat <<'E' | bash\nrm -rf %s\nE", "echo 'rm -rf %s' | sh", "printf 'rm -rf %s' | bash", "printf '%%s' 'rm -rf %s' | zsh", "printf '\\162m -rf %s' | sh", "echo 'rm -rf %s' | tee /dev/null | sh", "bash <(echo 'rm -rf %s')", ". <(echo 'rm -rf %s')", "source /dev/stdin <<< 'rm -rf %s'",
	"eval rm -rf %s", "eval 'rm -rf %s'", `eval "rm" "-rf" %s`, "eval \"$(echo 'rm -rf %s')\"", "$(echo rm) -rf %s", "`echo rm` -rf %s", "$(printf rm) -rf %s", "$(which rm) -rf %s", "$(command -v rm) -rf %s", "$(echo mr | rev) -rf %s", "$(echo cm0= | base64 -d) -rf %s",
	"X=rm; $X -rf %s", "X=rm; ${X} -rf %s", "A=r; B=m; $A$B -rf %s", "X='rm -rf'; ${=X} %s", "X='rm -rf'; $X %s", "F=-rf; rm $F %s", "a=(rm -rf); $a %s", `a=(rm -rf); "${a[@]}" %s`, "T=%s; rm -rf $T", `T=%s; rm -rf "$T"`, "T=%s; rm -rf ${T}", "T=%s; rm -rf ${T:-x}", "rm -rf ${NO:-%s}", "rm${IFS}-rf${IFS}%s", "{rm,-rf,%s}", "rm -rf {x,%s}", "rm -r{f,v} %s", "X=xrm; ${X#x} -rf %s", "X=rmx; ${X%%x} -rf %s", "export X=rm; $X -rf %s", "read X <<< rm; $X -rf %s", "typeset X=rm; $X -rf %s", "set -- rm -rf %s; \"$@\"", "set -- %s; rm -rf \"$1\"", "X=echo; $($X rm) -rf %s", "/bin/r? -rf %s", "/bin/[r]m -rf %s", "/bin/r* -rf %s", "=rm -rf %s", "noglob rm -rf %s", "nocorrect rm -rf %s", "- rm -rf %s", "repeat 1 rm -rf %s", "repeat 1; do rm -rf %s; done",
	"true; rm -rf %s", "true && rm -rf %s", "false || rm -rf %s", "true & rm -rf %s", "ls | rm -rf %s", "ls |& rm -rf %s", "ls\nrm -rf %s", "! rm -rf %s", "{ rm -rf %s; }", "(rm -rf %s)", "if true; then rm -rf %s; fi", "if [[ -n x ]] { rm -rf %s }", "while true; do rm -rf %s; done", "until rm -rf %s; do :; done", "for i in 1; do rm -rf %s; done", "for i in %s; do rm -rf $i; done", "for i (%s) rm -rf $i", "case x in x) rm -rf %s;; esac", "{ rm -rf %s } always { : }", "f() { rm -rf %s; }; f", "f() { rm -rf $1; }; f %s", "f() { rm -rf \"$@\"; }; f %s", "function f { rm -rf %s; }; f", "() { rm -rf %s }", "alias x='rm -rf'; x %s", "alias rm='rm -v'; rm -rf %s", "trap 'rm -rf %s' EXIT", "coproc rm -rf %s", "echo $(rm -rf %s)", "echo `rm -rf %s`", "echo \"$(rm -rf %s)\"", "cat <(rm -rf %s)", "cat <<E\n$(rm -rf %s)\nE", "x=$(rm -rf %s)", "[[ -n $(rm -rf %s) ]]", "x='a[$(rm -rf %s)]'; echo $((x))", "echo ${x:-$(rm -rf %s)}", "rm -rf %s > /dev/null 2>&1", "2>/dev/null rm -rf %s", "> /dev/null rm -rf %s", "rm -rf %s &", "rm -rf %s &!", "nohup rm -rf %s &", "# ok\nrm -rf %s", "cd %s && rm -rf *", "cd %s; rm -rf .", "pushd %s; rm -rf ./*", "(cd %s && rm -rf ./* )",
	"find %s -delete", "find %s -exec rm -rf {} +", "find %s -exec rm -rf {} \\;", "find %s -type f -delete", "find %s -depth -exec rm -rf {} \\;", "find %s -mindepth 1 -delete", "find %s -print0 | xargs -0 rm -rf", "find %s | xargs rm -rf", "find %s -exec sh -c 'rm -rf \"$1\"' _ {} \\;", "find x -exec rm -rf %s \\;", "echo %s | xargs rm -rf", "printf %s | xargs -I{} rm -rf {}", "xargs rm -rf <<< %s", "parallel rm -rf ::: %s", "echo %s | parallel rm -rf", "git -c alias.x='!rm -rf %s' x", "git bisect run rm -rf %s", "git rebase -x 'rm -rf %s' m", "tar -cf x y --checkpoint=1 --checkpoint-action=exec='rm -rf %s'", "man -P 'rm -rf %s' ls", "less '+!rm -rf %s' x", "sed '1e rm -rf %s' x", "vim -c '!rm -rf %s' x", "awk 'BEGIN{system(\"rm -rf %s\")}'", "perl -e 'system(\"rm -rf %s\")'", "python3 -c 'import os; os.system(\"rm -rf %s\")'", "python3 -c 'import shutil; shutil.rmtree(\"%s\")'", "python3 -c 'import subprocess; subprocess.run([\"rm\",\"-rf\",\"%s\"])'", "ruby -e 'system(\"rm -rf %s\")'", "node -e 'require(\"child_process\").execSync(\"rm -rf %s\")'", "python3 <<'E'\nimport os\nos.system('rm -rf %s')\nE", "PAGER='rm -rf %s' git log", "GIT_SSH_COMMAND='rm -rf %s' git fetch", "ssh -oProxyCommand='rm -rf %s' h", "ssh localhost 'rm -rf %s'", "docker run -v /:/m img rm -rf /m%s", "chroot / rm -rf %s", "nsenter -t 1 -m rm -rf %s", "tmux new -d 'rm -rf %s'", "at now <<< 'rm -rf %s'", "hyperfine 'rm -rf %s'", "entr rm -rf %s", "npx -c 'rm -rf %s'", "mv %s /dev/null", "rsync -a --delete x/ %s",
	// These the reading cannot or does not follow: they stand here so that the
	// figure is an honest one.
	"python3 -c 'exec(\"imp\"+\"ort os; os.system(chr(114)+chr(109)+\\\" -rf %s\\\")\")'", "perl -e 'unlink glob(\"%s/*\")'", "X=$(cat secret); $X -rf %s", "echo rm -rf %s > x.sh; sh x.sh", "printf 'rm -rf %s' > x; . ./x", "make -f - <<'E'\nall:\n\trm -rf %s\nE", "sh -c \"$(echo 'sn -sg %s' | sed 's/s/r/')\"", "gcc -o x x.c && ./x %s", "curl http://h/x.sh | sh -s %s", "crontab <<< '* * * * * rm -rf %s'", "php -r 'array_map(\"unlink\", glob(\"%s/*\"));'", "echo 'rm -rf %s' | at now", "rm -rf $(echo %s | cut -c1-)", "ssh $(hostname) rm -rf %s", "echo 'rm -rf %s' | gzip | gunzip | sh", "vi -es x <<< ':!rm -rf %s'", "rm -rf $(realpath $(dirname %s/x))", "env -S'rm -rf' %s", "perl -MFile::Path -e 'remove_tree(\"%s\")'",
}

// floor is how many of the respellings that the guard must catch, as measured; docs name
// the figure and say that it is a backstop.
const floor = 220

// TestGuardCatchesRespellings prints how many of many respellings of one deletion the
// guard sees. What it misses still asks a person.
func TestGuardCatchesRespellings(t *testing.T) {
	p := testPolicy(t, nil)
	var missed []string
	total := len(respellings)
	for i, form := range respellings {
		target := []string{"~", "/", "/home/u", "/etc"}[i%4]
		if strings.Contains(form, "/m%s") || strings.Contains(form, "%s/") || strings.Contains(form, "import") || strings.Contains(form, "system(") || strings.Contains(form, "{rm") || strings.Contains(form, "T=") || strings.Contains(form, "printf") {
			target = "/home/u"
		}
		text := fmt.Sprintf(form, target)
		if _, ok := refused(p, text); !ok {
			missed = append(missed, text)
		}
	}
	text := base64.StdEncoding.EncodeToString([]byte("rm -rf ~"))
	for _, form := range []string{"echo %s | base64 -d | sh", "base64 -d <<< %s | sh", "eval \"$(echo %s | base64 -d)\"", "sh -c \"$(base64 --decode <<< %s)\""} {
		total++
		if _, ok := refused(p, fmt.Sprintf(form, text)); !ok {
			missed = append(missed, fmt.Sprintf(form, text))
		}
	}
	caught := total - len(missed)
	sort.Strings(missed)
	fmt.Printf("the guard catches %d of %d respellings of a deletion (%d %%)\n", caught, total, caught*100/total)
	t.Logf("missed:\n%s", strings.Join(missed, "\n"))
	if total < 200 {
		t.Errorf("only %d respellings", total)
	}
	if caught < floor {
		t.Errorf("caught %d, the floor is %d", caught, floor)
	}
}
