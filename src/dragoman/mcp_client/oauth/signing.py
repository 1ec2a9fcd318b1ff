"""Signs an assertion with a private key, for `private_key_jwt`. It needs the package `cryptography`, which few servers make necessary."""

from __future__ import annotations

from typing import Any

from dragoman.values.errors import ConfigError
from dragoman.words import say


def sign_with_key(pem: str, algorithm: str, data: bytes) -> bytes:
    """Raises ConfigError if the key does not fit, or the package is missing. Nothing of the key is in the message."""
    try:
        from cryptography.hazmat.primitives import hashes, serialization
        from cryptography.hazmat.primitives.asymmetric import ec, padding, utils
    except ImportError as error:
        raise ConfigError(say("mcp_auth.no_signing")) from error
    try:
        key: Any = serialization.load_pem_private_key(pem.encode(), None)
        if algorithm == "RS256":
            return bytes(key.sign(data, padding.PKCS1v15(), hashes.SHA256()))
        if algorithm == "ES256":
            r, s = utils.decode_dss_signature(key.sign(data, ec.ECDSA(hashes.SHA256())))
            return r.to_bytes(32, "big") + s.to_bytes(32, "big")
    except (ValueError, TypeError, AttributeError):
        pass
    raise ConfigError(say("mcp_auth.bad_key", algorithm=algorithm)) from None
