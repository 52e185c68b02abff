package main

import (
	"encoding/json"
	"errors"
	"time"
)

// settings say how requests are answered. "Every k" means the k-th, 2k-th, … request since the settings were made; 0 is never.
type settings struct {
	// From the request, fully read, to its first token; between tokens (packets). Milliseconds.
	TTFT float64 `json:"ttft"`
	ITL  float64 `json:"itl"`
	// Both are uniform within ± this share.
	Jitter float64 `json:"jitter"`
	Seed   int64   `json:"seed"`
	// Output tokens of an answer; a request may ask for fewer.
	Tokens int `json:"tokens"`
	// Events, of one token each, in one write(2).
	TokensPerPacket int `json:"tokensPerPacket"`
	// When the chunk with the role and an empty content is sent, in milliseconds after the request; below 0 together with the first token.
	Role float64 `json:"role"`
	// Answers at once, the others wait in line; 0 is any number.
	Slots int `json:"slots"`

	InternalErrorEvery int `json:"internalErrorEvery"`
	RateLimitEvery     int `json:"rateLimitEvery"`
	// Of a 429, in seconds; below 0 without the header.
	RetryAfter int `json:"retryAfter"`
	// The connection is closed after half of the tokens.
	CutEvery int `json:"cutEvery"`
	// An error event after half of the tokens, inside of the 200.
	ErrorEventEvery int `json:"errorEventEvery"`
	// Half of the tokens, then a pause, then the rest.
	StallEvery int     `json:"stallEvery"`
	Stall      float64 `json:"stall"`
}

var defaults = settings{TTFT: 20, ITL: 5, Tokens: 64, TokensPerPacket: 1, Role: -1, RetryAfter: -1}

// parseSettings gives what a POST asked for, the rest as by default.
func parseSettings(body []byte) (settings, error) {
	asked := defaults
	if err := json.Unmarshal(body, &asked); err != nil {
		return asked, err
	}
	if asked.Tokens < 1 || asked.TokensPerPacket < 1 || asked.TTFT < 0 || asked.ITL < 0 || asked.Jitter < 0 || asked.Jitter > 1 {
		return asked, errors.New("tokens and tokensPerPacket are at least 1, ttft and itl at least 0, jitter is 0 to 1")
	}
	return asked, nil
}

func nanoseconds(milliseconds float64) int64 { return int64(milliseconds * float64(time.Millisecond)) }

// outcome is what became of a request.
type outcome uint8

const (
	answered outcome = iota
	internalError
	rateLimited
	cut
	errorEvent
	stalled
	// The client closed the connection first.
	abandoned
)

// fate is what the n-th request, from 1, is to suffer.
func (s *settings) fate(n int) outcome {
	every := func(k int) bool { return k > 0 && n%k == 0 }
	switch {
	case every(s.InternalErrorEvery):
		return internalError
	case every(s.RateLimitEvery):
		return rateLimited
	case every(s.CutEvery):
		return cut
	case every(s.ErrorEventEvery):
		return errorEvent
	case every(s.StallEvery):
		return stalled
	}
	return answered
}
