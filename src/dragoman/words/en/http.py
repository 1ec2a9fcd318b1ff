"""The library: connections, proxies, certificates."""

TEXTS = {
    # --- no answer came
    "http.or": " or ",
    "http.proxy_login": "the proxy {proxy} refused the connection ({reason}); it needs a user and password: "
    "{scheme}://user:password@host:port",
    "http.proxy_wrong_login": "the proxy {proxy} refused the connection (wrong user or password); put the right ones into its "
    "address: socks5://user:password@host:port",
    "http.proxy_no_login": "the proxy {proxy} refused the connection (it accepts no user and password); remove them from its address",
    "http.proxy_needs_login": "it does not let everybody in",
    "http.proxy_cannot_connect": "the proxy {proxy} could not connect to {host}: {reason}; check your proxy settings",
    "http.proxy_not_socks": "the proxy {proxy} did not answer in SOCKS 5; check your proxy settings",
    "http.no_tls": "no TLS connection to {where}: {reason}; if it is a plain HTTP server, write its address with http://",
    "http.connect_timeout": "cannot reach {where}: no connection within {seconds:g} s; check the address and your network",
    "http.hung_up": "{where} closed the connection without answering; try again",
    "http.not_http": "{where} did not answer in HTTP; check that the address and port are those of the API",
    "http.unknown_host": "cannot find {where}: the name does not resolve; check the spelling, and whether you are online",
    "http.refused": "cannot reach {where}: connection refused; is the server running? Start it, or check the address",
    "http.broken": "{where} broke the connection; try again",
    "http.no_route": "cannot reach {where}: no route to it; are you online?",
    "http.unreachable": "cannot reach {where}: {reason}; check the address and your network",
    # --- certificates
    "http.certificate_other_host": "the certificate is not for {where}; check the address, and whether a proxy is in between",
    "http.certificate_dates": "the certificate of {where} is out of date ({reason}); check this machine's clock",
    "http.certificate_untrusted": "certificate not trusted: {where} ({reason}); if your network has its own certificate authority, "
    "set SSL_CERT_FILE to a file with its certificate",
    "http.certificates_unreadable": "cannot read the certificates: {reason}",
    "http.certificates_named_unreadable": "cannot read the certificates that {names} names: {reason}; check the path",
    "http.no_certificates": "this system has no certificates where Python looks for them; set SSL_CERT_FILE to a file of trusted "
    "certificates",
    # --- an answer that is cut or damaged
    "http.wrong_compression": "{host} sent a body that is not compressed as it says; a proxy in between may have damaged it",
    "http.garbled": "{where} sent an answer that is garbled after {bytes:byte|bytes}; try again",
    "http.cut_short": "{where} cut its answer short after {bytes:byte|bytes}; try again",
    "http.unknown_encoding": "{host} sent a body in the encoding {encoding!r}, which was not asked for",
    "http.event_too_long": "the service sent an event of more than {most} bytes",
    # --- what cannot be sent
    "http.header_character": "the header {name!r} has a character that headers cannot contain; remove it",
    "http.not_sent": "the request to {host} is not valid HTTP and was not sent; check its address and headers",
    "http.not_an_address": "{address!r} is not the address of a server; it should look like https://api.example.com",
    "http.proxy_kind": "proxies of the kind {scheme}:// are not supported; use {kinds}{hint}",
    "http.proxy_kind_socks": "; for SOCKS, run pip install '.[httpx]' in your clone of Dragoman and connect with http=\"httpx\"",
    "http.not_a_proxy": "{address!r} is not the address of a proxy; it should look like http://proxy.example.com:8080",
    "http.httpx_missing": "http=\"httpx\" needs one more package: run pip install '.[httpx]' in your clone of Dragoman",
}
