package secret

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestNamed(t *testing.T) {
	for _, name := range []string{
		"GITHUB_TOKEN", "API_KEY", "OPENAI_API_KEY", "OLLAMA_API_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "PGPASSWORD",
		"MYSQL_PWD", "DB_PASS", "apiKey", "client_secret", "NPM_CONFIG__AUTH", "SSH_KEY", "KEY", "GITHUB_PAT", "API_KEY_2", "TOKEN_V2",
		"DB_PASSWORD_PROD", "SESSION_COOKIE", "ENCRYPTION_KEY_BASE64", "AUTHTOKEN", "GPG_PASSPHRASE",
	} {
		if !Named(name) {
			t.Errorf("Named(%q) = false, want true", name)
		}
	}
	for _, name := range []string{
		"", "_", "PATH", "PWD", "OLDPWD", "HOME", "KEY_FILE", "SSH_KEY_PATH", "MAX_TOKENS", "MAX_TOKEN", "PUBLIC_KEY", "TOKENIZER", "KEYBOARD",
		"SSH_AUTH_SOCK", "GIT_ASKPASS", "CACHE_KEY", "PRIMARY_KEY", "KEY_ENTER", "XKB_DEFAULT_LAYOUT", "AUTHOR", "SECRETARY", "TOKEN_URL",
		"PASSWORD_STORE_DIR", "BYPASS_CACHE", "GNOME_KEYRING_CONTROL", "OLD_PWD", "TERM", "COMPASS",
	} {
		if Named(name) {
			t.Errorf("Named(%q) = true, want false", name)
		}
	}
}

func TestScrubEnv(t *testing.T) {
	env := []string{
		"PATH=/usr/bin", "ZCODER_HOME=/h", "ZCODER_MODEL=m", "OLLAMA_API_KEY=abc", "OLLAMA_HOST=h:1", "GITHUB_TOKEN=ghp_x", "DB_PASSWORD=pw",
		"SSH_KEY=/home/u/.ssh/id", "SKIP_AUTH=true", "HOME=/root", "LANG=C", "SSH_AUTH_SOCK=/run/x", "NOVALUE", "EMPTY_TOKEN=",
	}
	before := slices.Clone(env)
	got := ScrubEnv(env)
	want := []string{
		"PATH=/usr/bin", "OLLAMA_HOST=h:1", "SSH_KEY=/home/u/.ssh/id", "SKIP_AUTH=true", "HOME=/root", "LANG=C", "SSH_AUTH_SOCK=/run/x", "NOVALUE", "EMPTY_TOKEN=",
	}
	if !slices.Equal(got, want) {
		t.Errorf("ScrubEnv\n got %q\nwant %q", got, want)
	}
	if !slices.Equal(env, before) {
		t.Error("ScrubEnv changed its argument")
	}
}

func TestMaskValues(t *testing.T) {
	m := New([]string{
		"DEPLOY_TOKEN=tr0ub4dor&3", "DB_PASSWORD=it \"is\" <me>", "SHORT_TOKEN=abc1234", "KEY_FILE=/etc/secret/file", "SSH_KEY=/root/.ssh/id_rsa",
		"A_TOKEN=12345678", "B_SECRET=disabled", "PLAIN=abcdefghijk", "WITH_LINES_SECRET=line one\nline two\n",
	}, "own-token-of-this-run", "abc")
	for _, c := range []struct{ name, in, want string }{
		{"value", "curl -H x-t:tr0ub4dor&3 h", "curl -H x-t:[masked: DEPLOY_TOKEN] h"},
		{"inside a word", "xtr0ub4dor&3y", "x[masked: DEPLOY_TOKEN]y"},
		{"twice", "tr0ub4dor&3tr0ub4dor&3", "[masked: DEPLOY_TOKEN][masked: DEPLOY_TOKEN]"},
		{"in JSON", `{"p":"it \"is\" <me>"}`, `{"p":"[masked: DB_PASSWORD]"}`},
		{"in JSON with HTML escapes", `{"p":"it \"is\" \u003cme\u003e"}`, `{"p":"[masked: DB_PASSWORD]"}`},
		{"in a query", "?q=tr0ub4dor%263", "?q=[masked: DEPLOY_TOKEN]"},
		{"several lines", "x line one\nline two y", "x [masked: WITH_LINES_SECRET] y"},
		{"own token", "Bearer own-token-of-this-run", "Bearer [masked: token]"},
		{"too short", "abc1234 abc", "abc1234 abc"},
		{"paths, numbers, words, other variables", "/root/.ssh/id_rsa /etc/secret/file 12345678 disabled abcdefghijk", "/root/.ssh/id_rsa /etc/secret/file 12345678 disabled abcdefghijk"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := m.Mask(c.in); got != c.want {
				t.Errorf("Mask(%q)\n got %q\nwant %q", c.in, got, c.want)
			}
		})
	}
}

func TestLongerValueAndOverlapAreMaskedWhole(t *testing.T) {
	m := New([]string{"A_TOKEN=prefix-00", "B_TOKEN=prefix-00-and-more", "C_TOKEN=ghp_0123"})
	if got, want := m.Mask("prefix-00-and-more"), "[masked: B_TOKEN]"; got != want {
		t.Errorf("Mask = %q, want %q", got, want)
	}
	if got := m.Mask("ghp_0123456789abcdefghij0123456789"); strings.Contains(got, "456789") {
		t.Errorf("Mask left a part of a token that begins with a shorter value: %q", got)
	}
}

const (
	fakeJWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
	fakeGH  = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
)

func TestMaskShapes(t *testing.T) {
	var m *Masker
	for _, c := range []struct{ name, in, want string }{
		{"GitHub", "use " + fakeGH + ".", "use [masked: GitHub token]."},
		{"GitHub, fine-grained", "github_pat_11ABCDEFG0123456789_abcdefghijklmnop", "[masked: GitHub token]"},
		{"sk-", "key sk-proj-abcdef0123456789ABCDEF", "key [masked: API key]"},
		{"AWS", "AKIAIOSFODNN7EXAMPLE", "[masked: AWS key]"},
		{"AWS secret in a file", "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "aws_secret_access_key = [masked: AWS key]"},
		{"Slack", "xoxb-123456789012-abcdefGHIJKL", "[masked: Slack token]"},
		{"JWT", "t=" + fakeJWT + ";", "t=[masked: JWT];"},
		{"JWT from curl -v", "> Authorization: Bearer " + fakeJWT + "\n> Accept: */*", "> Authorization: Bearer [masked: JWT]\n> Accept: */*"},
		{"Basic", "authorization: Basic dXNlcjpwYXNz", "authorization: Basic [masked: authorization]"},
		{"header in JSON", `{"Authorization":"Bearer abc123def456ghi"}`, `{"Authorization":"Bearer [masked: authorization]"}`},
		{"header in JSON in JSON", `"{\"Authorization\":\"Bearer abc123def456ghi\"}"`, `"{\"Authorization\":\"Bearer [masked: authorization]\"}"`},
		{"bearer alone", "curl --oauth2-bearer x; Bearer abc123def456ghi789", "curl --oauth2-bearer x; Bearer [masked: token]"},
		{"key header", "X-Api-Key: 0123456789abcdef", "X-Api-Key: [masked: token]"},
		{"cookie", "Cookie: session=abcdef123456; theme=dark9", "Cookie: [masked: cookie]"},
		{"URL", "postgres://bob:hunter2@db:5432/x", "postgres://bob:[masked: password]@db:5432/x"},
		{"URL, at sign in the password", "https://bob:p@ss@w0rd@host/x", "https://bob:[masked: password]@host/x"},
		{"URL with a token", "https://0123456789abcdef0123@host/x.git", "https://[masked: token]@host/x.git"},
		{"query", "GET /x?user=a&access_token=abc123def456&b=1", "GET /x?user=a&access_token=[masked: token]&b=1"},
		{"curl -u", "curl -s -u bob:hunter2 http://h/", "curl -s -u bob:[masked: password] http://h/"},
		{"assignment", "export MY_API_KEY=s3cr3tvalue", "export MY_API_KEY=[masked: MY_API_KEY]"},
		{"assignment in JSON", `{"env":{"MY_API_KEY":"s3cr3tvalue"}}`, `{"env":{"MY_API_KEY":"[masked: MY_API_KEY]"}}`},
		{"assignment in YAML", "  MY_API_KEY: s3cr3tvalue", "  MY_API_KEY: [masked: MY_API_KEY]"},
		{"long token", "Authorization: Bearer " + strings.Repeat("a1B2", 5000) + " end", "Authorization: Bearer [masked: authorization] end"},
		{"npmrc", "//h/:_authToken=abc123def456", "//h/:_authToken=[masked: token]"},
		{"netrc", "machine h login bob password hunter2", "machine h login bob password [masked: password]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := m.Mask(c.in)
			if got != c.want {
				t.Errorf("Mask(%q)\n got %q\nwant %q", c.in, got, c.want)
			}
			if again := m.Mask(got); again != got {
				t.Errorf("masking again changes to %q", again)
			}
		})
	}
}

func TestMaskLeavesOrdinaryTextAlone(t *testing.T) {
	m := New([]string{"GITHUB_TOKEN=ghx-unrelated-value"})
	for _, in := range []string{
		"commit 9bb07f7c1f1d4f0f9c1f2a7d3b5e6f708192a3b4",
		"6f9619ff-8b86-d011-b42d-00cf4fc964ff",
		`"integrity": "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg=="`,
		"github.com/spf13/pflag v1.1.0 h1:4EBh2KAYBwaONj6b2Ye1GiHfwjqyROoF4RwYO+vPwFk=",
		"set password=secret in the form, or password: yourpassword",
		"const KEY = iota; KEY_ENTER=0x0d1234567890; CACHE_KEY=v1-linux-0123456789",
		"Authorization: required", "an Authorization: Bearer token is needed", "the bearer of this letter",
		"https://example.org:8080/path@2x.png", "git@github.com:user/repo.git", "ssh://git@host/x", "https://user:$PASS@host/",
		"sk-learn-contrib-examples-directory", "task-0123456789abcdef0123", "disk-0123456789abcdef0123",
		"MAX_TOKENS=8192000000", "TOKEN=$GITHUB_TOKEN_FROM_ENV1", "API_KEY=/run/secrets/api1/key",
		"Cookie: a small baked good", "eyJ is the start of a token", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
		"-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----", "a PRIVATE KEY is secret; END of it",
	} {
		if got := m.Mask(in); got != in {
			t.Errorf("Mask(%q)\n     = %q", in, got)
		}
	}
}

const (
	keyBody = "MIIEpAIBAAKCAQEA7bq9Zk1xV3xkTqf0m8pQ2s5v8y/B?E(H+MbQeThWmZq4t7w9z\n" +
		"QeThWmZq4t7w9zC0FJaNcRfUjXn2r5u8x0A1DGKaPdSgVkYp3s6v9yxBzE1HtMcQ\n" + "Zk1xV3xk=\n"
	begin = "-----BEGIN RSA PRIVATE KEY-----"
	end   = "-----END RSA PRIVATE KEY-----"
)

func TestMaskPrivateKeys(t *testing.T) {
	body := strings.NewReplacer("?", "a", "(", "b").Replace(keyBody)
	lines := strings.Split(strings.TrimSpace(body), "\n")
	whole := begin + "\n" + body + end
	inJSON, err := json.Marshal(map[string]string{"key": whole, "other": "kept"})
	if err != nil {
		t.Fatal(err)
	}
	twice, err := json.Marshal(string(inJSON))
	if err != nil {
		t.Fatal(err)
	}
	const mark = "[masked: private key]"
	for _, c := range []struct{ name, in, want string }{
		{"whole", "a\n" + whole + "\nb", "a\n" + mark + "\nb"},
		{"two", whole + "\n" + whole, mark + "\n" + mark},
		{"CRLF", "a\r\n" + strings.ReplaceAll(whole, "\n", "\r\n") + "\r\nb", "a\r\n" + mark + "\r\nb"},
		{"OpenSSH", "-----BEGIN OPENSSH PRIVATE KEY-----\n" + body + "-----END OPENSSH PRIVATE KEY-----", mark},
		{"PGP", "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: x\n\n" + body + "=abcd\n-----END PGP PRIVATE KEY BLOCK-----.", mark + "."},
		{"SSH2", "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\n" + body + "---- END SSH2 ENCRYPTED PRIVATE KEY ----", mark},
		{"literal line ends", "KEY='" + strings.ReplaceAll(whole, "\n", `\n`) + "' x", "KEY='" + mark + "' x"},
		{"one line", strings.ReplaceAll(whole, "\n", " ") + " tail", mark + " tail"},
		{"in JSON", string(inJSON), `{"key":"` + mark + `","other":"kept"}`},
		{"in JSON in JSON", string(twice), `"{\"key\":\"` + mark + `\",\"other\":\"kept\"}"`},
		{"no end", "a\n" + begin + "\n" + body + "then some words", "a\n" + mark + "\nthen some words"},
		{"no end, cut in a line", begin + "\n" + lines[0] + "\n" + lines[1][:20], mark},
		{"no end, with headers", begin + "\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00FF\n\n" + body, mark + "\n"},
		{"no end, literal line ends, in JSON", `{"key":"` + begin + `\n` + lines[0] + `\n` + lines[2] + `","other":"kept"}`, `{"key":"` + mark + `","other":"kept"}`},
		{"no end, one line", begin + " " + lines[0] + " " + lines[1] + " and words", mark + " and words"},
		{"end label cut", begin + "\n" + body + "-----END RS", mark},
		{"begin label cut", begin[:26], mark},
		{"no begin", "some words\n" + body + end + "\nb", "some words\n" + mark + "\nb"},
		{"no begin, cut in a line", "… 20 bytes left out …" + lines[0][20:] + "\n" + lines[1] + "\n" + end, "… 20 bytes left out …" + mark},
		{"no begin, literal line ends", `"x": "` + lines[0] + `\n` + lines[1] + `\n` + end + `\n"`, `"x": "` + mark + `\n"`},
		{"middle left out", begin + "\n" + lines[0] + "\n… 900 bytes left out …\n" + lines[1] + "\n" + end + "\nb", mark + "\nb"},
		{"numbered lines", "1: " + begin + "\n2: " + lines[0] + "\n3: " + lines[1] + "\n4: done now", "1: " + mark + "\n4: done now"},
		{"grep", "id_rsa:1:" + begin + "\nid_rsa:2:" + lines[0] + "\nother:9: text", "id_rsa:1:" + mark + "\nother:9: text"},
		{"a hash in the next line", begin + "\n" + lines[0] + "\ncommit 9bb07f7c1f1d4f0f9c1f2a7d3b5e6f708192a3b4", mark + "\ncommit 9bb07f7c1f1d4f0f9c1f2a7d3b5e6f708192a3b4"},
		{"indented", "key: |\n  " + begin + "\n  " + lines[0] + "\n  " + lines[2] + "\nnext: x", "key: |\n  " + mark + "\nnext: x"},
		{"named in prose", "the line `" + begin + "` starts it", "the line `" + mark + "` starts it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := (*Masker)(nil).Mask(c.in)
			if got != c.want {
				t.Errorf("Mask(%q)\n got %q\nwant %q", c.in, got, c.want)
			}
			if again := (*Masker)(nil).Mask(got); again != got {
				t.Errorf("masking again changes to %q", again)
			}
		})
	}
}

// FuzzMask holds: a known value never stands in masked text, text without secrets
// around it is kept, and no part of a whole private key is left.
func FuzzMask(f *testing.F) {
	f.Add("curl -H 'Authorization: Bearer ", "' http://h")
	f.Add(`{"a":"`, `"}`)
	f.Add(begin+"\n", "\n"+end)
	f.Add("-----BEGIN PRIVATE KEY", "\\n\\\\n")
	f.Add("https://u:", "@h/x?token=")
	m := New([]string{"THE_TOKEN=V3ryS3cret-value"})
	f.Fuzz(func(t *testing.T, before, after string) {
		in := before + "V3ryS3cret-value" + after
		if got := m.Mask(in); strings.Contains(got, "V3ryS3cret-value") {
			t.Fatalf("Mask(%q) = %q", in, got)
		}
		in = before + begin + "\nQ0FGRUJBQkVDQUZFQkFCRQ==\n" + end + after
		if got := m.Mask(in); strings.Contains(got, "Q0FGRUJBQkVDQUZFQkFCRQ") {
			t.Fatalf("Mask(%q) = %q", in, got)
		}
	})
}

func TestMaskTakesLinearTime(t *testing.T) {
	for _, part := range []string{"A=", "AB_KEY=a", "://", "://a:", "curl -u ", "machine a login ", "-----BEGIN PRIVATE KEY", "-----END PRIVATE KEY", "eyJ.", "Cookie: a="} {
		in := strings.Repeat(part, 1<<16/len(part))
		start := time.Now()
		(*Masker)(nil).Mask(in)
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("64 KiB of %q took %v", part, took)
		} else if testing.Verbose() {
			t.Logf("%q: %v", part, took)
		}
	}
}

func BenchmarkMask(b *testing.B) {
	m := New([]string{"GITHUB_TOKEN=" + fakeGH, "DB_PASSWORD=correct horse"})
	text := strings.Repeat("ok   zcoder/internal/secret 0.1s (cached) https://h/x password=x KEY=value\n", 1000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		m.Mask(text)
	}
}
