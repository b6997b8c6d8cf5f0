"""Integer index expressions: the arithmetic of loop variables and strides.

Expressions here are small, exact and always in one normal form, so that equal indexes compare equal.
Imports: `base` only; knows no tensor and no operator.
"""
