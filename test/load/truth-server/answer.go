package main

import (
	"fmt"
	"net/http"
	"strings"
)

// What goes over the wire, in the shape of vLLM's answers. Clients that count tokens themselves have a tokenizer in which " line" is one
// (test/servers/tiny-hf.ts).

const (
	streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n"
	chatHead   = `{"id":"chatcmpl-7f3d2a91c0","object":"chat.completion.chunk","created":1700000000,"model":"truth","choices":[`
	textHead   = `{"id":"cmpl-7f3d2a91c0","object":"text_completion","created":1700000000,"model":"truth","choices":[`
	streamEnd  = "0\r\n\r\n"
	modelList  = `{"object":"list","data":[{"id":"truth","object":"model","created":1700000000,"owned_by":"tracewright","max_model_len":32768}]}`
	failure    = `{"error":{"message":"as the settings say","type":"%s","code":%d}}`
)

func event(data string) []byte {
	text := "data: " + data + "\n\n"
	return []byte(fmt.Sprintf("%x\r\n%s\r\n", len(text), text))
}

var (
	roleEvent    = event(chatHead + `{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}`)
	chatToken    = event(chatHead + `{"index":0,"delta":{"content":" line"},"logprobs":null,"finish_reason":null}]}`)
	textToken    = event(textHead + `{"index":0,"text":" line","logprobs":null,"finish_reason":null}]}`)
	chatFinish   = event(chatHead + `{"index":0,"delta":{},"logprobs":null,"finish_reason":"length"}]}`)
	textFinish   = event(textHead + `{"index":0,"text":"","logprobs":null,"finish_reason":"length"}]}`)
	done         = event("[DONE]")
	failureEvent = event(fmt.Sprintf(failure, "internal_server_error", 500))
)

func usageOf(a *asked) string {
	return fmt.Sprintf(`{"prompt_tokens":%d,"completion_tokens":%d,"total_tokens":%d}`, a.inputTokens, a.tokens, a.inputTokens+a.tokens)
}

// appendTokens appends n events of one token each.
func appendTokens(out []byte, a *asked, n int) []byte {
	token := chatToken
	if a.legacy {
		token = textToken
	}
	for range n {
		out = append(out, token...)
	}
	return out
}

// appendTail appends what follows the last token.
func appendTail(out []byte, a *asked) []byte {
	head, finish := chatHead, chatFinish
	if a.legacy {
		head, finish = textHead, textFinish
	}
	out = append(out, finish...)
	if a.usage {
		// Behind the `[` of the choices, which are none.
		out = append(out, event(head+`],"usage":`+usageOf(a)+`}`)...)
	}
	out = append(out, done...)
	return append(out, streamEnd...)
}

// wholeAnswer is the body of an answer that is not streamed.
func wholeAnswer(a *asked) string {
	text := strings.Repeat(" line", a.tokens)
	if a.legacy {
		return textHead + `{"index":0,"text":"` + text + `","finish_reason":"length"}],"usage":` + usageOf(a) + `}`
	}
	head := strings.Replace(chatHead, "chat.completion.chunk", "chat.completion", 1)
	return head + `{"index":0,"message":{"role":"assistant","content":"` + text + `"},"finish_reason":"length"}],"usage":` + usageOf(a) + `}`
}

func plain(status int, body, fields string) []byte {
	return []byte(fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n%s\r\n%s", status, http.StatusText(status), len(body), fields, body))
}

func refusal(status int, retryAfter int) []byte {
	kind, fields := "server_error", ""
	if status == http.StatusTooManyRequests {
		kind = "rate_limit_error"
		if retryAfter >= 0 {
			fields = fmt.Sprintf("Retry-After: %d\r\n", retryAfter)
		}
	}
	return plain(status, fmt.Sprintf(failure, kind, status), fields)
}
