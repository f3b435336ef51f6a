"""Figures: values first (`picture`), drawn as SVG or as PNG. Nobody draws on a screen. Pure.

What a figure needs of either is a screenful or two, which is less than any library would bring with it.
"""
