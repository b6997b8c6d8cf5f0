"""Levels of one program run side by side on copies of a call's inputs, and compared in units of rounding noise.

A level is the program as one stage of the compiler has it, as a callable.  Nothing here knows how a level is made.
"""
