#!/bin/sh
# Sends recorded requests again with curl and looks whether an oracle holds.
#
# Run: sh traffic.sh
set -u
# Bodies are bytes.
LC_ALL=C
export LC_ALL

here=$(cd "$(dirname "$0")" && pwd)
script=$here/$(basename "$0")

cannot_test() {
    echo "cannot test: $*" >&2
    exit 125
}

# Reads parameters.json, one value a line as it was written, into $work: settings, and for each request a file for curl
# and its body.
read_parameters() {
    # shellcheck disable=SC2016
    awk '
# What a JSON string says; a long one is written to a file, piece by piece.
function text(json, file,    part, count, at, piece, out) {
    sub(/^"/, "", json)
    sub(/",?$/, "", json)
    count = split(json, part, /\\/)
    out = ""
    for (at = 1; at <= count; at++) {
        if (at == 1) piece = part[at]
        else if (part[at] == "") piece = "\\" part[++at]
        else piece = unescaped(substr(part[at], 1, 1), part[at])
        if (file == "") out = out piece
        else printf "%s", piece > file
    }
    return out
}

function unescaped(kind, part) {
    # JSON escapes only control characters by number: the others stand as they are.
    if (kind == "u") return sprintf("%c", 16 * digit(substr(part, 4, 1)) + digit(substr(part, 5, 1))) substr(part, 6)
    return (kind in ESCAPED ? ESCAPED[kind] : kind) substr(part, 2)
}

function digit(character) {
    return index("0123456789abcdef", tolower(character)) - 1
}

# In the file for curl a value stands in quotes, on one line.
function quoted(value) {
    gsub(/[\001-\037\177]/, "", value)
    gsub(/[\\"]/, "\\\\&", value)
    return "\"" value "\""
}

function set(name, value) {
    gsub(/[^0-9.]/, "", value)
    print name "=" value > (work "/settings")
}

BEGIN {
    work = ENVIRON["work"]
    base = ENVIRON["REPRO_BASE_URL"]
    count = 0
    ESCAPED["n"] = "\n"
    ESCAPED["t"] = "\t"
    ESCAPED["r"] = "\r"
    ESCAPED["b"] = "\b"
    ESCAPED["f"] = "\f"
}
/^  "/ { section = $1 }
{
    indent = match($0, /[^ ]/) - 1
    line = substr($0, indent + 1)
    key = value = line
    sub(/: .*/, "", key)
    sub(/^"([^"\\]|\\.)*": /, "", value)
}
indent == 2 && key ~ /^"(attempts|concurrency|timeout_s)"$/ { set(substr(key, 2, length(key) - 2), value) }
indent == 4 && section == "\"oracle\":" && key == "\"kind\"" {
    gsub(/[^a-z-]/, "", value)
    print "oracle=" value > (work "/settings")
}
indent == 4 && section == "\"oracle\":" && key == "\"within_s\"" { set("within_s", value) }
section != "\"traffic\":" { next }
indent == 4 && key == "\"base_url\"" && base == "" { base = text(value) }
indent == 6 && line == "{" {
    file = work "/request-" count ".curl"
    sub(/\/+$/, "", base)
}
indent == 8 && key == "\"offset_s\"" { sub(/,$/, "", value); print value > (work "/request-" count ".offset") }
indent == 8 && key == "\"method\"" {
    method = text(value)
    print (method == "HEAD" ? "head" : "request = " quoted(method)) > file
}
indent == 8 && key == "\"path\"" {
    path = text(value)
    # Whatever it says, it goes to this server.
    if (path !~ /^\//) path = "/" path
    print "url = " quoted(base path) > file
}
indent == 10 {
    name = line
    sub(/": .*/, "\"", name)
    name = text(name)
    if (name ~ /^[A-Za-z0-9_.-]+$/) {
        header = text(value)
        print "header = " quoted(header == "" ? name ";" : name ": " header) > file
    }
}
indent == 8 && key == "\"body\"" && value !~ /^null/ {
    body = work "/request-" count ".body"
    printf "" > body
    text(value, body)
    close(body)
}
indent == 6 && line ~ /^}/ {
    close(file)
    close(work "/request-" count ".offset")
    count += 1
}
END {
    print "requests=" count > (work "/settings")
    print base > (work "/base")
}
' "$1"
}

now() {
    # Without %N, as on some systems, seconds have to do.
    case $(date +%N) in
    *[!0-9]*) date +%s ;;
    *) date +%s.%N ;;
    esac
}

# Headers that are no one else's to see, not even in a list of processes.
credential() {
    if [ -n "${REPRO_API_KEY:-}" ]; then
        key=$(printf '%s' "$REPRO_API_KEY" | sed 's/[\\"]/\\&/g')
        printf 'header = "Authorization: Bearer %s"\n' "$key"
    fi
}

# What was answered is no command to a terminal.
shown() {
    head -c 200 | tr '\n' ' ' | tr -cd '[:print:]'
}

# region: cross-talk
mark() {
    printf 'mark-%06d-end' "$1"
}

# endregion
# Sends one request and writes down what is wrong with its answer: nothing when all is well.
attempt() {
    number=$1
    # shellcheck source=/dev/null
    . "$work/settings"
    request=$work/request-$((number % requests))
    own=$work/attempt-$number
    # Once through them all, they start again where the last one was sent.
    last=$(cat "$work/request-$((requests - 1)).offset")
    pause=$(echo "$start $(now) $(cat "$request.offset") $((number / requests)) $last" |
        awk '{ pause = $1 + $3 + $4 * $5 - $2; printf "%.3f", (pause > 0 ? pause : 0) }')
    sleep "$pause"
    set --
    # An answer without a body leaves no file.
    : >"$own.answer"
    if [ -f "$request.body" ]; then
        body=$request.body
        # region: cross-talk
        body=$own.body
        sed "s/{nonce}/$(mark "$number")/g" "$request.body" >"$body"
        # endregion
        set -- --data-binary "@$body"
    fi
    status=$(credential | curl -q --silent --show-error --globoff --path-as-is --noproxy '*' --max-time "$limit" \
        --proto '=http,https' --header 'Expect:' --config - --config "$request.curl" "$@" \
        --output "$own.answer" --write-out '%{http_code}' 2>"$own.problem")
    code=$?
    # It was not found, not reached, or is no one to trust: nothing was asked.
    case $code in
    6 | 7 | 35 | 60) cp "$own.problem" "$own.unreached" ;;
    esac
    # region: no-progress
    if [ "$status" = 000 ]; then
        echo "attempt $number: no answer within $limit s" >"$own.failed"
    fi
    # endregion
    # region: exception
    if [ "$code" -ne 0 ]; then
        echo "attempt $number: $(shown <"$own.problem")" >"$own.failed"
    elif [ "$status" -ge 400 ]; then
        echo "attempt $number: $status $(shown <"$own.answer")" >"$own.failed"
    fi
    # endregion
    # region: cross-talk
    if [ "$code" -eq 0 ] && [ "$status" -lt 400 ]; then
        : >"$own.answered"
        strange=$(grep -o 'mark-[0-9]\{6\}-end' "$own.answer" | sort -u | grep -v "$(mark "$number")" | tr '\n' ' ')
        if [ -n "$strange" ]; then
            echo "attempt $number was answered with $strange" >"$own.failed"
        fi
    else
        echo "$status $(shown <"$own.problem")" >"$own.unanswered"
    fi
    # endregion
    rm -f "$own.answer" "$own.problem" "$own.body"
}

# Of this script, called for one attempt by xargs below.
if [ "${1:-}" = attempt ]; then
    attempt "$2"
    exit 0
fi

command -v curl >/dev/null || cannot_test 'there is no curl'
work=$(mktemp -d) || cannot_test 'there is no place for temporary files'
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
export work
parameters=${REPRO_PARAMETERS:-$here/parameters.json}
read_parameters "$parameters" || cannot_test "$parameters cannot be read"
attempts='' concurrency='' timeout_s='' within_s='' oracle='' requests=0
# shellcheck source=/dev/null
. "$work/settings"
for value in "$attempts" "$concurrency" "$timeout_s"; do
    [ -n "$value" ] || cannot_test "$parameters does not have one value a line"
done
[ "$requests" -gt 0 ] || cannot_test "$parameters holds no requests, one value a line"
base=$(cat "$work/base")
# Others are curl's, too: it would read a file.
case $base in
[Hh][Tt][Tt][Pp]://* | [Hh][Tt][Tt][Pp][Ss]://*) ;;
*) cannot_test "$(printf '%s' "$base" | shown) is no address of http or https" ;;
esac
if [ -n "${REPRO_API_KEY:-}" ] && [ -z "${REPRO_BASE_URL:-}" ]; then
    cannot_test "REPRO_API_KEY is set, and $(printf '%s' "$base" | shown) comes from a recording:" \
        'name the server that may have the key in REPRO_BASE_URL'
fi
case $oracle in
# region: exception
exception) ;;
# endregion
# region: no-progress
no-progress) ;;
# endregion
# region: cross-talk
cross-talk) ;;
# endregion
*) cannot_test "this script has no check for $oracle" ;;
esac
# What a server may take for one answer before it counts as failed.
limit=${within_s:-$timeout_s}
start=$(now)
export start limit
# Each at its time after the first, that many at once at most.
awk -v n="$attempts" 'BEGIN { for (i = 0; i < n; i++) print i }' |
    xargs -n 1 -P "$concurrency" sh "$script" attempt || cannot_test 'xargs cannot run attempts side by side'
unreached=$(find "$work" -name 'attempt-*.unreached' | wc -l)
if [ "$unreached" -ge "$attempts" ]; then
    cannot_test "$(cat "$work/base") does not answer: $(shown <"$work/attempt-0.unreached")"
fi
# region: cross-talk
if [ -z "$(find "$work" -name 'attempt-*.answered' | head -n 1)" ]; then
    cannot_test "every request failed, one of them: $(cat "$work"/attempt-*.unanswered | head -n 1)"
fi
# endregion
failed=$(find "$work" -name 'attempt-*.failed' | sed 's/.*attempt-\(.*\)\.failed$/\1/' | sort -n)
for number in $(echo "$failed" | head -n 5); do
    cat "$work/attempt-$number.failed"
done
errors=$(echo "$failed" | grep -c .)
echo "Errors: $errors / $attempts"
[ "$errors" -eq 0 ]
