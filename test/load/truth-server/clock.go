package main

import (
	"syscall"
	"time"
	"unsafe"
)

const clockMonotonic = 1

var (
	began = time.Now()
	// Go's monotonic time counts from a point of its own.
	toMonotonic = rawMonotonic() - int64(time.Since(began))
)

// now is CLOCK_MONOTONIC in nanoseconds, without a system call.
func now() int64 { return int64(time.Since(began)) + toMonotonic }

func rawMonotonic() int64 {
	var at syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&at)), 0)
	return at.Nano()
}

// fromWall turns a recent CLOCK_REALTIME, as the kernel stamps packets with, into CLOCK_MONOTONIC.
func fromWall(wall int64) int64 {
	at := time.Now()
	return int64(at.Sub(began)) + toMonotonic - (at.UnixNano() - wall)
}
