"""What is compiled here is validated at its first call."""

from support.validated import validated_compilation

__all__ = ["validated_compilation"]
