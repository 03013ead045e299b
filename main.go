// Command zcoder is a terminal agent for people who run their own models.
package main

import "os"

func main() { os.Exit(0) }
