"""Sizes and strides of results, where torch's own shape rules say another than its kernels give, or do not say any."""
