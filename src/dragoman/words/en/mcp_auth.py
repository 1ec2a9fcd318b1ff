"""Signing in to MCP servers."""

TEXTS = {
    # What is asked of whom, in the sentences below.
    "mcp_auth.the_server": "the server",
    "mcp_auth.resource_metadata": "the server's metadata",
    "mcp_auth.issuer": "the authorization server",
    "mcp_auth.issuer_metadata": "the authorization server's metadata",
    "mcp_auth.endpoint": "an endpoint of the authorization server",
    "mcp_auth.token_endpoint": "the token endpoint",
    "mcp_auth.registration": "the registration",
    "mcp_auth.client_document": "the client metadata document",
    # URLs and requests
    "mcp_auth.bad_url": "{what} has a URL that cannot be used: {url}",
    "mcp_auth.not_https": "{what} is not at an https URL: {url}; signing in uses https, or http on this machine",
    "mcp_auth.inside": "the server points to {host}, inside a private network, and is not in one itself: that address is not asked",
    "mcp_auth.no_address": "{host} cannot be found ({reason})",
    "mcp_auth.slow": "{what} at {url} has not answered within {seconds:second|seconds}",
    "mcp_auth.too_long": "{what} at {url} is longer than {kilobytes} kB, and was not read",
    "mcp_auth.status": "HTTP {status}",
    # Finding the authorization server
    "mcp_auth.other_resource": "the metadata of {url} is for another server ({resource}); a token for that one must not be sent here",
    "mcp_auth.no_issuer": "{url} names no authorization server in its metadata",
    "mcp_auth.other_issuer": "the authorization server {asked} says in its metadata that it is {claimed}; one of them is not what it seems",
    "mcp_auth.no_issuer_metadata": "{issuer} has no metadata of an authorization server; the server may not use OAuth at all",
    "mcp_auth.no_endpoint": "the authorization server {issuer} does not say where one signs in",
    "mcp_auth.no_pkce": "the authorization server {issuer} does not support PKCE with S256, without which a sign-in can be stolen",
    # Who we are to it
    "mcp_auth.client_of_other": "the client id belongs to the authorization server {expected}, and the server now names {issuer}; "
    "it is not sent there",
    "mcp_auth.no_registration": "the authorization server {issuer} does not register clients by itself; "
    "register one there and set its client id",
    "mcp_auth.not_registered": "the authorization server {issuer} did not register us ({reason})",
    "mcp_auth.no_client_id": "a client id is needed for this sign-in, and none is set",
    "mcp_auth.bad_redirect": "{uri} cannot be the redirect of a sign-in: it must be http on this machine, such as http://127.0.0.1:8765/callback",
    "mcp_auth.port_taken": "cannot listen for the redirect {uri} ({reason})",
    "mcp_auth.no_signing": "signing with a private key needs the package cryptography, which is not installed",
    "mcp_auth.bad_key": "the private key cannot sign {algorithm}",
    # In the browser
    "mcp_auth.open_this": "To sign in, open this address in a browser:\n\n{url}\n",
    "mcp_auth.waiting": "Waiting for the browser. Ctrl-C cancels.",
    "mcp_auth.paste": "Waiting for the browser. If it runs on another machine, it ends on a page that cannot be shown: "
    "paste that page's address here and press Enter. Ctrl-C cancels.",
    "mcp_auth.pasted_wrong": "That is not the address this sign-in ends on. Paste the whole address, from http:// on.",
    "mcp_auth.nobody_came": "nobody signed in within {minutes:minute|minutes}",
    "mcp_auth.page_done": "Dragoman has received the answer. You may close this page and go back to the terminal.",
    "mcp_auth.page_unknown": "This address does not belong to a sign-in that is under way. You may close this page.",
    # The answer
    "mcp_auth.mixed_up": "the answer in the browser did not come from {issuer}; nothing of it was used",
    "mcp_auth.denied": "{issuer} did not let you in ({reason})",
    "mcp_auth.no_code": "its answer has no code",
    "mcp_auth.no_token": "{issuer} gave no token ({reason})",
    "mcp_auth.odd_token": "its answer has no bearer token",
    # Requests of a run
    "mcp_auth.failed": "signing in to the MCP server {name} failed: {reason}",
    "mcp_auth.nobody_to_ask": "somebody has to sign in to {url}",
    "mcp_auth.sign_in_needed": "nobody is signed in to {name}, or the sign-in has ended; "
    "sign in with `login` of dragoman.mcp_client.oauth.login",
    "mcp_auth.scope_refused": "the server requires a permission that was requested before and not granted ({scopes})",
    "mcp_auth.too_many_scopes": "the server has asked for more permissions {count:time|times} in a row",
    # Storage
    "mcp_auth.not_kept": "the token of {name} could not be stored ({reason}); it is used until this program ends",
    "mcp_auth.tokens_unreadable": "{path} cannot be read ({reason})",
    "mcp_auth.tokens_damaged": "{path} is damaged, so no stored sign-in can be used; delete it, and sign in again",
    "mcp_auth.keyring_closed": "the sign-in is in the system's keyring, which cannot be used ({reason})",
    # dragoman mcp login, logout
    "mcp_auth.kind_grant": "authorization_code or client_credentials",
    "mcp_auth.kind_number": "a number",
    "mcp_auth.is_a_program": "{name} is a program on this machine: it signs in by itself, with what its entry gives it (env)",
    "mcp_auth.signed_in": "signed in to {name} through {issuer}{scopes}",
    "mcp_auth.with_scopes": ", with {scopes}",
    "mcp_auth.in_keyring": "The token is in the system's keyring; {path} notes that.",
    "mcp_auth.in_file": "The token is in {path}, which only you can read.",
    "mcp_auth.not_signed_in": "nobody was signed in to {name}",
    "mcp_auth.signed_out": "signed out of {name}; {issuer} has revoked the token",
    "mcp_auth.signed_out_here": "signed out of {name}; the token was deleted here, and expires at {issuer}",
}
