"""The mark by which stock `torch.compile` is found again behind what replaced it; imports nothing."""

STOCK = "_plumbline_stock"
"""Attribute of the function in place of torch.compile that holds the stock one."""
