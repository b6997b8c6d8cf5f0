"""SilentBench: programs on which a compiler gives, or once gave, a silently wrong answer, and how a judge scores."""
