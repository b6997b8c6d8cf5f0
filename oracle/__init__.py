"""The judge: is a compiled call right?"""
