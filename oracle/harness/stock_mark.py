"""The attribute that leads from a replaced `torch.compile` back to stock; imports nothing."""

STOCK = "_plumbline_stock"
"""Attribute of the function in place of torch.compile that holds the stock one."""
