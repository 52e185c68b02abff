module tracewright/truth-server

go 1.22
