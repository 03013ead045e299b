// Command zcoder is a terminal agent for people who run their own models.
package main

import (
	"os"

	"zcoder/internal/app"
)

func main() { os.Exit(app.Main()) }
