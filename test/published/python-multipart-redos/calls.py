"""The options of a Content-Type header, some of them with a run of backslashes."""

try:
    from python_multipart.multipart import parse_options_header
except ImportError:
    from multipart.multipart import parse_options_header


async def parse(backslashes):
    name, options = parse_options_header('multipart/form-data; !="' + "\\" * backslashes)
    return len(options)
