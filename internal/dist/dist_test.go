package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
)

var when = time.Unix(1_700_000_000, 0).UTC()

func TestArchive(t *testing.T) {
	files := []file{{"zcoder", 0o755, []byte("program")}, {"a/b", 0o644, []byte("text")}}
	packed, err := archive("zcoder-1-linux-amd64", files, when)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(files)
	again, err := archive("zcoder-1-linux-amd64", files, when)
	if err != nil || !bytes.Equal(packed, again) {
		t.Errorf("the same files in another order give another archive (%v)", err)
	}
	zip, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	if !zip.ModTime.IsZero() || zip.Name != "" {
		t.Errorf("the archive says when and where it was made: %v %q", zip.ModTime, zip.Name)
	}
	r := tar.NewReader(zip)
	for _, want := range []struct {
		name, text string
		mode       int64
	}{{"zcoder-1-linux-amd64/a/b", "text", 0o644}, {"zcoder-1-linux-amd64/zcoder", "program", 0o755}} {
		h, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil || h.Name != want.name || string(text) != want.text || h.Mode != want.mode || !h.ModTime.Equal(when) || h.Uid != 0 || h.Uname != "" {
			t.Errorf("%+v with %q (%v), want %+v", h, text, err, want)
		}
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("more follows: %v", err)
	}
}

func TestBill(t *testing.T) {
	info := &debug.BuildInfo{
		GoVersion: "go1.26.8",
		Deps: []*debug.Module{
			{Path: "m.example/a", Version: "v1.2.3+incompatible", Sum: "h1:abc"},
			{Path: "m.example/ours", Version: "v1.0.0", Replace: &debug.Module{Path: "./internal/noschema"}},
			{Path: "m.example/old", Version: "v1.0.0", Replace: &debug.Module{Path: "m.example/fork", Version: "v2.0.0", Sum: "h1:def"}},
		},
		Settings: []debug.BuildSetting{{Key: "GOOS", Value: "linux"}},
	}
	text, err := bill(info, "1.0", []byte("program"), when)
	if err != nil {
		t.Fatal(err)
	}
	var d document
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	self := d.Metadata.Component
	if d.Format != "CycloneDX" || d.Spec != "1.5" || d.Metadata.Timestamp != "2023-11-14T22:13:20Z" || self.Version != "1.0" || self.Properties[0] != (property{"go:GOOS", "linux"}) ||
		self.Hashes[0] != (hash{"SHA-256", "1310ca2c8932dbd118668bd97442558a3e1f546b5e15c69699dfbd6024f548d8"}) {
		t.Errorf("the document: %+v", d)
	}
	for i, want := range []component{
		{Name: "std", Version: "go1.26.8", PURL: "pkg:golang/std@1.26.8"},
		{Name: "m.example/a", Version: "v1.2.3+incompatible", PURL: "pkg:golang/m.example/a@v1.2.3%2Bincompatible"},
		{Name: "m.example/ours", Version: "v1.0.0", PURL: ""},
		{Name: "m.example/fork", Version: "v2.0.0", PURL: "pkg:golang/m.example/fork@v2.0.0"},
	} {
		if got := d.Components[i]; got.Name != want.Name || got.Version != want.Version || got.PURL != want.PURL {
			t.Errorf("component %d: %+v, want %+v", i, got, want)
		}
	}
	if got := d.Components[2].Description; got != "replaced by internal/noschema of this tree" {
		t.Errorf("a replaced module: %q", got)
	}
	if got := d.Dependencies[0].Uses; len(got) != 4 || got[3] != "m.example/old" {
		t.Errorf("dependencies: %q", got)
	}
}

func TestCheck(t *testing.T) {
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Skip("no ELF file to look at: ", err)
	}
	if err := (options{limit: 0.001}).check("linux/amd64", self); err == nil || !strings.Contains(err.Error(), "more than the 0.0 that the Makefile states") {
		t.Errorf("a program that is too large: %v", err)
	}
	if err := (options{}).check("linux/amd64", []byte("no program")); err == nil {
		t.Error("what is no program is taken for one")
	}
	if err := (options{limit: 1}).check("darwin/arm64", make([]byte, 1000)); err != nil {
		t.Errorf("a small program: %v", err)
	}
}

func TestSums(t *testing.T) {
	got := string(sumsText(map[string][]byte{"b": []byte(""), "a": []byte("abc")}))
	want := "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a\n" +
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  b\n"
	if got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

func TestCommitTime(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	if got, err := commitTime(); err != nil || !got.Equal(when) {
		t.Errorf("commitTime = %v, %v", got, err)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "yesterday")
	if _, err := commitTime(); err == nil {
		t.Error("yesterday is taken for a time")
	}
}
