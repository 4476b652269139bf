"""The pure part of the client: protocol rules, without a clock, I/O or randomness.

Time comes in as an argument, and commands go out. ``runtime`` drives it.
"""
