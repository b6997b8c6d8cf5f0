"""The addresses of databases hold passwords, and results are shown to others."""

import re


def without_password(text: str) -> str:
    """Return the text with the password of every URL in it replaced by `***`."""
    return _PASSWORD_IN_USER.sub(r"\1***", _PASSWORD_IN_QUERY.sub(r"\1***", text))


_PASSWORD_IN_USER = re.compile(r"([a-zA-Z][\w.+-]*://[^\s/:@]*:)\S*(?=@)")
_PASSWORD_IN_QUERY = re.compile(r"([?&](?:password|passwd|pwd|sslpassword)=)[^&\s]*", re.IGNORECASE)
