// Package demo is what `zcoder --demo` shows to whoever has no Ollama yet: a small
// sample project with a bug, and a scripted model that finds it, fixes it and tests
// the fix through the real loop, tools, gate and session.
//
// It knows the sample and the script. It is never chosen by itself: only the flag
// starts it.
package demo

import (
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"zcoder/internal/scripted"
)

//go:embed sample
var sample embed.FS

//go:embed script.txt
var script string

// Model is the name of the scripted model.
const Model = "demo-model"

// Prompt is what is asked when nothing was typed.
const Prompt = "The test of this project fails. Find out why and fix it."

// ending answers when the script is over.
const ending = "That was the demonstration: its replies are prepared. With a model of your own " +
	"(`ollama serve`, `ollama pull qwen3-coder`, then `zcoder` in a project) I work on what you ask."

// Start serves the scripted model on a free loopback port until stop is called.
func Start(wordDelay, firstDelay time.Duration) (url string, stop func(), err error) {
	parsed, err := scripted.Parse(script)
	if err != nil {
		return "", nil, fmt.Errorf("read the demonstration's script: %w", err)
	}
	return scripted.New(parsed, scripted.Options{
		WordDelay: wordDelay, FirstDelay: firstDelay, Ending: ending, AnyModel: true, DropBodies: true,
	}).Start()
}

// Unpack writes a fresh copy of the sample project into dir, which must exist.
func Unpack(dir string) error {
	return fs.WalkDir(sample, "sample", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := sample.ReadFile(path)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, e.Name()), data, 0o644); err != nil {
			return fmt.Errorf("unpack the sample project: %w", err)
		}
		return nil
	})
}
