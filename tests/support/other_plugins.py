"""Plugins of pytest's in the dev extra, which a user need not have: runs inside tests leave them out."""

OTHERS = ("asyncio", "benchmark", "pytest_cov", "pytest_mock", "randomly", "rerunfailures", "timeout")

WITHOUT_OTHERS = tuple(word for name in OTHERS for word in ("-p", f"no:{name}"))
"""Options of pytest."""
