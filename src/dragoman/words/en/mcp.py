"""The library: servers of the Model Context Protocol."""

TEXTS = {
    # --- a program
    "mcp.no_program": "the MCP server's program {command!r} was not found; install it, or give its whole path",
    "mcp.not_started": "the MCP server's program {command!r} could not be started: {reason}",
    "mcp.died": "the MCP server {server} ended (exit code {code})",
    "mcp.died_saying": "the MCP server {server} ended (exit code {code}); its last words: {stderr}",
    "mcp.only_garbage": "the MCP server {server} wrote {count:line|lines} that are not MCP to its standard output, and was ended; "
    "logs belong to standard error",
    # --- an address
    "mcp.unreachable": "the MCP server {server} cannot be reached: {reason}",
    "mcp.lost": "the connection to the MCP server {server} was lost: {reason}",
    "mcp.refused": "the MCP server at {host} refused the request (HTTP {status}){body}",
    "mcp.sign_in": "the MCP server at {host} requires signing in (HTTP {status}){body}",
    "mcp.forbidden": "the MCP server at {host} does not allow this (HTTP {status}){body}",
    "mcp.no_answer": "the MCP server {server} ended its answer before it was complete",
    "mcp.stream_ended": "the MCP server {server} ended its stream",
    "mcp.session_lost": "the MCP server {server} has forgotten this session",
    "mcp.other_host": "the MCP server {server} wants messages sent to another host ({address}), which is not allowed",
    # --- what it says
    "mcp.closed": "the connection to the MCP server {server} was closed",
    "mcp.timed_out": "the MCP server {server} did not answer for {seconds:g} s ({method})",
    "mcp.protocol_error": "the MCP server {server} answered with an error: {message} ({code})",
    "mcp.too_long": "the MCP server sent an answer of more than {most:byte|bytes}",
    "mcp.not_mcp": "what {server} answered is not MCP ({reason}); check the address",
    "mcp.unknown_version": "the MCP server {server} speaks an unknown revision of the protocol ({version})",
    "mcp.no_version": "the MCP server {server} speaks only unknown revisions of the protocol ({versions})",
    "mcp.unknown_result": "the MCP server {server} gave a result of an unknown kind ({kind})",
    "mcp.asks_forever": "the MCP server {server} asked {count:time|times} for more and gave no result",
    "mcp.unsendable": "what was to be sent to the MCP server {server} is not JSON: {reason}",
    "mcp.not_offered": "the MCP server {server} asked for something that is not offered ({method})",
}
