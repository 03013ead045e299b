package app

import (
	"os"
	"path/filepath"
	"testing"
)

func TestSecretIn(t *testing.T) {
	base := t.TempDir()
	root, home := filepath.Join(base, "secrets.yml", "ws"), filepath.Join(base, "home")
	for _, dir := range []string{root, home} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{filepath.Join(home, "policy.toml"), filepath.Join(root, ".env"), filepath.Join(root, "a.c")} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"plain": ".env", "own": home, "fine": "a.c"} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	secret := secretIn(root, home)
	for name, want := range map[string]bool{
		filepath.Join(root, "a.c"): false, filepath.Join(root, ".env"): true, filepath.Join(root, "plain"): true, filepath.Join(root, "own", "policy.toml"): true, filepath.Join(root, "fine"): false,
		".env": true, "x": false, "/etc/shadow": true, filepath.Join(root, "none"): false,
	} {
		if got := secret(name) != ""; got != want {
			t.Errorf("%s: secret %v, want %v", name, got, want)
		}
	}
}
