"""Figures as SVG: text comes out, nobody draws on a screen. Pure.

What a figure needs of SVG is a screenful, which is less than any library would bring with it.
"""
