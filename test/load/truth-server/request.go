package main

import (
	"bytes"
	"errors"
	"strconv"
)

// request is what the parser makes of the bytes of one; its slices are of the connection's buffer.
type request struct {
	method, path []byte
	body         []byte
	span         uint64
	wantsBody    bool // Expect: 100-continue
}

var (
	errIncomplete = errors.New("incomplete")
	errMalformed  = errors.New("malformed")
	lineEnd       = []byte("\r\n")
	headEnd       = []byte("\r\n\r\n")
)

// parseRequest reads the first request of the bytes and says how many they were. With errIncomplete, and wantsBody, the client waits for a
// "100 Continue".
func parseRequest(in []byte) (r request, n int, err error) {
	end := bytes.Index(in, headEnd)
	if end < 0 {
		return r, 0, errIncomplete
	}
	line, fields, _ := bytes.Cut(in[:end], lineEnd)
	parts := bytes.SplitN(line, []byte(" "), 3)
	if len(parts) != 3 {
		return r, 0, errMalformed
	}
	r.method, r.path = parts[0], parts[1]
	length, chunked := 0, false
	for len(fields) > 0 {
		var field []byte
		field, fields, _ = bytes.Cut(fields, lineEnd)
		name, value, _ := bytes.Cut(field, []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case bytes.EqualFold(name, []byte("content-length")):
			if length, err = strconv.Atoi(string(value)); err != nil || length < 0 {
				return r, 0, errMalformed
			}
		case bytes.EqualFold(name, []byte("transfer-encoding")):
			chunked = true
		case bytes.EqualFold(name, []byte("expect")):
			r.wantsBody = true
		case bytes.EqualFold(name, []byte("traceparent")):
			r.span = spanOf(value)
		}
	}
	start := end + len(headEnd)
	if chunked {
		body, used, err := parseChunks(in[start:])
		r.body = body
		return r, start + used, err
	}
	if len(in)-start < length {
		return r, 0, errIncomplete
	}
	r.body = in[start : start+length]
	return r, start + length, nil
}

func parseChunks(in []byte) (body []byte, n int, err error) {
	for {
		line := bytes.Index(in[n:], lineEnd)
		if line < 0 {
			return nil, 0, errIncomplete
		}
		size, err := strconv.ParseInt(string(in[n:n+line]), 16, 31)
		if err != nil {
			return nil, 0, errMalformed
		}
		n += line + len(lineEnd)
		if len(in)-n < int(size)+len(lineEnd) {
			return nil, 0, errIncomplete
		}
		body = append(body, in[n:n+int(size)]...)
		n += int(size) + len(lineEnd)
		if size == 0 {
			return body, n, nil
		}
	}
}

// spanOf is the parent id of a traceparent: 00-<32 digits>-<16 digits>-<2 digits>.
func spanOf(traceparent []byte) uint64 {
	parts := bytes.Split(traceparent, []byte("-"))
	if len(parts) < 4 {
		return 0
	}
	span, _ := strconv.ParseUint(string(parts[2]), 16, 64)
	return span
}

// asked is what a body says, found by its keys: the clients' JSON is not the test, and decoding it would cost more than answering.
type asked struct {
	streaming, usage, legacy bool
	tokens                   int
	inputTokens              int
}

func parseAsked(path, body []byte) asked {
	a := asked{
		streaming: isTrue(after(body, `"stream"`)),
		usage:     isTrue(after(body, `"include_usage"`)),
		legacy:    bytes.HasPrefix(path, []byte("/v1/completions")),
		// About four letters a token and some for the JSON: a number to return, no count.
		inputTokens: len(body) / 5,
	}
	for _, key := range []string{`"max_completion_tokens"`, `"max_tokens"`} {
		if n := number(after(body, key)); n > 0 {
			a.tokens = n
			break
		}
	}
	return a
}

// after gives what follows a key and its colon.
func after(body []byte, key string) []byte {
	i := bytes.Index(body, []byte(key))
	if i < 0 {
		return nil
	}
	return bytes.TrimLeft(body[i+len(key):], " :")
}

func isTrue(value []byte) bool { return bytes.HasPrefix(value, []byte("true")) }

func number(value []byte) int {
	n := 0
	for _, c := range value {
		if c < '0' || c > '9' {
			break
		}
		n = n*10 + int(c-'0')
	}
	return n
}
