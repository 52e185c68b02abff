// Command truth-server is an OpenAI-compatible endpoint whose latencies are set to the microsecond and whose log says what it really did:
// the reference that load generators are measured against. One thread, epoll with a nanosecond timeout, a heap of timers, one write(2) for
// each packet of tokens. Linux on amd64 or arm64; standard library only.
//
//	POST /v1/chat/completions, /v1/completions   as settings.go says
//	GET  /v1/models, /health
//	POST /truth/settings                         JSON (settings.go); starts a new log
//	GET  /truth/log                              the log (log.go), binary
//
// Times are CLOCK_MONOTONIC in nanoseconds, so that they compare with those of other processes of the machine.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
)

// The log of the longest run fits; the collector, which would stop the thread, then never runs.
const memoryLimit = 3 << 30

func main() {
	address := flag.String("listen", "127.0.0.1:0", "IPv4 address and port")
	flag.Parse()
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(memoryLimit)
	runtime.LockOSThread()
	server, err := listen(*address)
	if err != nil {
		fmt.Fprintln(os.Stderr, "truth-server:", err)
		os.Exit(1)
	}
	fmt.Printf("READY %d %d\n", os.Getpid(), server.port)
	if err := server.serve(); err != nil {
		fmt.Fprintln(os.Stderr, "truth-server:", err)
		os.Exit(1)
	}
}
