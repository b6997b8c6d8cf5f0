"""plumbline: compiled PyTorch, judged; the face of the package."""
